create or replace function reconcile.is_enforced(p_class text, p_mode text) returns boolean
language sql immutable parallel safe as $$
  select p_class <> 'identity' or coalesce(p_mode, 'enforce') = 'enforce'
$$;
comment on function reconcile.is_enforced is
  'Whether a finding counts against the mirror. A broken invariant (class identity) does so in mode enforce only.';
