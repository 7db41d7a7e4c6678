-- online
-- What is removed when it is old is found by these, in few pages.

-- Alerts that ended. What is kept for longer is of other rules.
create index concurrently if not exists alerts_ended on alerts.alerts (rule, resolved_at) where state = 'resolved';
-- Reads that leave nothing behind, as reconcile.is_routine_read() has them.
create index concurrently if not exists doubts_routine on reconcile.doubts (settled_at)
  where why in ('open_item', 'out_of_time') and outcome <> 'unreadable';
-- Events without a time of their own, and those dated far off.
create index concurrently if not exists seen_default_seq on inbox.seen_default (seq);

-- reports.delivery_statement() reads it now: who may read when an event was applied may read this as well.
-- harmless: it grants, and grants the same again when it is repeated
do $$
declare
  granted record;
begin
  for granted in
    select acl.grantee::regrole as grantee from pg_class c, aclexplode(c.relacl) acl
    where c.oid = 'inbox.progress'::regclass and acl.privilege_type = 'SELECT' and acl.grantee not in (0, c.relowner)
  loop
    execute format('grant select on inbox.dropped to %s', granted.grantee);
  end loop;
end $$;
