-- The feed's next partitions, until a worker makes more of them.
create table feed.changes_10000001 (like feed.changes including defaults including constraints);
-- harmless: the new partition is empty, and so is the default one that is read for its rows
alter table feed.changes attach partition feed.changes_10000001 for values from (10000001) to (20000001);
create table feed.changes_20000001 (like feed.changes including defaults including constraints);
-- harmless: the same
alter table feed.changes attach partition feed.changes_20000001 for values from (20000001) to (30000001);

comment on table feed.facts is
  'What feed.changes has told once for ever: refunds, disputes, erasures. Kept when the changes are dropped.';
