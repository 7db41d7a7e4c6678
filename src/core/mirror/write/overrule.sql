-- Moves overruled states out of the history, into mirror.unbelieved with the number of the heal: those later than the
-- shown states, and those dated after p_latest. p_resources, p_ids and p_shown_at belong together, one shown state
-- each. No state is lost, so every role that may record a heal may call it; otherwise only the owner may change the
-- history. The heal is one of this transaction, and the states are those of its object: an order shows its transactions
-- as well. session_user is the role that logged in: inside a function with the owner's rights, current_user is the
-- owner.
create or replace function mirror.overrule(p_resources text[], p_ids text[], p_shown_at timestamptz[],
                                           p_latest timestamptz, p_observed_at timestamptz, p_heal bigint)
returns void language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
begin
  if not has_column_privilege(session_user, 'mirror.heals', 'reason', 'insert') then
    raise exception 'the role % may not heal, so it may not overrule states', session_user
      using errcode = 'insufficient_privilege';
  end if;
  if not exists (
    select from mirror.heals h
    where h.seq = p_heal and h.healed_at >= transaction_timestamp() and not exists (
      select from unnest(p_ids) as given(id)
      where given.id <> h.id and not exists (
        select from mirror.transactions t where t.id = given.id and t.order_id = h.id))
  ) then
    raise exception 'the transaction records no heal % of what would be overruled', p_heal
      using errcode = 'restrict_violation';
  end if;
  -- The history's trigger refuses changes without this setting.
  perform set_config('tallyhook.erasure', 'on', true);
  with shown as (
    select * from unnest(p_resources, p_ids, p_shown_at) as s(resource, id, shown_at)
  ), gone as (
    delete from mirror.versions v using (select distinct s.id from shown s) object
    where v.id = object.id and (v.source_updated_at > p_latest or exists (
      select from shown s where s.resource = v.resource and s.id = v.id
        -- Of states with the shown time, only later reads go: an event's has no observed_at and compares as null.
        and (v.source_updated_at, v.observed_at) > (s.shown_at, p_observed_at)))
    returning v.resource, v.id, v.source_updated_at, v.content_hash, v.recorded_at, v.observed_at, v.cause, v.data
  )
  insert into mirror.unbelieved
    (resource, id, source_updated_at, content_hash, recorded_at, observed_at, cause, data, heal)
  select distinct on (g.resource, g.id, g.source_updated_at, g.content_hash) g.*, p_heal from gone g
  on conflict (resource, id, source_updated_at, content_hash) do update
    -- Both have the same content. The moved one was in the history; the existing one may not have been.
    set heal = excluded.heal, data = excluded.data;
  perform set_config('tallyhook.erasure', 'off', true);
end
$$;
