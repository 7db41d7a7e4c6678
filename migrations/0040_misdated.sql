-- Objects of which a state is dated in the future, and none has been read since that is not: one row an object, so that
-- they are one incident with a count, and are over without a hand.
create table mirror.misdated (
  resource text collate "C" not null,
  id text collate "C" not null,
  -- The latest time that a state of it was dated.
  dated_at timestamptz not null,
  amount bigint,
  currency text,
  noted_at timestamptz not null default now(),
  -- When its next read was last ordered.
  ordered_at timestamptz not null default now(),
  primary key (resource, id)
);
create index misdated_id on mirror.misdated (id);
create index misdated_ordered on mirror.misdated (ordered_at);
comment on table mirror.misdated is
  'Objects that wait for a read that is not dated in the future; their states are in mirror.unbelieved.';
-- What waited before is read again, in the order of its coming.
insert into mirror.misdated (resource, id, dated_at, noted_at, ordered_at)
select split_part(u.resource, '.', 1), u.id, max(u.source_updated_at), min(u.recorded_at), min(u.recorded_at)
from mirror.unbelieved u where u.heal is null group by 1, 2
on conflict do nothing;
