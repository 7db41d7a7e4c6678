-- The reader of a consumer, in two calls of one transaction: it takes a page, acts, and records its position. The row
-- of the consumer stays locked in between, so a second reader of the same name waits and continues after the first.
-- feed.done() moves the position forward only, to the number of a change that was handed out. The first position may be
-- a number that no change has, from feed.readable_until(). A crash of the server does not give it out again: the commit
-- of the consumer's row is later in the WAL than the sequence's step. Both run with the rights of the caller.
create or replace function feed.next_changes(p_consumer text, p_limit integer default 500)
returns setof feed.changes language plpgsql volatile as $$
declare
  v_until bigint;
  v_position bigint;
  v_pages jsonb := coalesce(nullif(current_setting('tallyhook.feed_pages', true), ''), '{}');
  v_last bigint := v_pages ->> p_consumer;
  v_change feed.changes;
begin
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    raise exception 'feed.next_changes() would miss changes at %', current_setting('transaction_isolation')
      using errcode = 'invalid_transaction_state', hint = 'Begin the transaction at READ COMMITTED.';
  end if;
  if p_limit is null or p_limit not between 1 and 10000 then
    raise exception 'a page has 1 to 10000 changes, not %', coalesce(p_limit::text, 'null')
      using errcode = 'invalid_parameter_value';
  end if;
  select k.position into v_position from feed.consumers k where k.name = p_consumer for update;
  if not found then
    raise exception 'the feed has no consumer %', coalesce(p_consumer, 'null')
      using errcode = 'no_data_found', hint = 'Insert its row into feed.consumers once (docs/feed.md).';
  end if;
  v_until := feed.readable_until();
  for v_change in
    select c.* from feed.changes c where c.seq > v_position and c.seq <= v_until order by c.seq limit p_limit
  loop
    v_last := greatest(v_last, v_change.seq);
    return next v_change;
  end loop;
  -- Ends with the transaction, as the lock does. What an earlier call handed out in it may still be done.
  perform set_config('tallyhook.feed_pages', (v_pages || jsonb_build_object(p_consumer, v_last))::text, true);
end
$$;
comment on function feed.next_changes(text, integer) is
  'The next changes of a consumer, in the order of seq. Call feed.done() in the same transaction, at READ COMMITTED.';

create or replace function feed.done(p_consumer text, p_seq bigint) returns void
language plpgsql volatile strict as $$
declare
  v_last bigint := nullif(current_setting('tallyhook.feed_pages', true), '')::jsonb ->> p_consumer;
begin
  if v_last is null or p_seq > v_last then
    raise exception 'change % was not handed out to consumer % in this transaction', p_seq, p_consumer
      using errcode = 'invalid_parameter_value',
        hint = 'Call feed.next_changes() in the same transaction, and feed.done() with a seq that it returned.';
  end if;
  update feed.consumers k set position = p_seq, moved_at = now() where k.name = p_consumer and k.position < p_seq;
  if not found then
    raise exception 'consumer % is at change % or later, or was removed', p_consumer, p_seq
      using errcode = 'invalid_parameter_value', hint = 'A position moves forward only.';
  end if;
end
$$;
comment on function feed.done(text, bigint) is
  'Moves a consumer to a change that feed.next_changes() handed out in this transaction. Nothing is done for null.';
