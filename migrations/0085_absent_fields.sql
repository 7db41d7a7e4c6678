-- An event may lack fields that the service has of its object: what it lacks is not null. Null for what was recorded
-- before, and for reads, which show all.
alter table mirror.versions add column absent_fields text[];
comment on column mirror.versions.absent_fields is
  'fields of the interface that the event did not show, nested ones with a dot: of these it says nothing; null: none';
