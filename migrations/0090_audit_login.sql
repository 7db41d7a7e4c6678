-- Which login wrote the record of an act: a process can put any name into `actor`, and none here.
-- Rows of before have none.
alter table people.audit add column login name;
alter table people.audit alter column login set default session_user;
comment on column people.audit.login is
  'The database role that wrote the row, by the database itself; null: before this was recorded.';
