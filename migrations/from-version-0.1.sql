-- A database of version 0.1, after the last of its 43 migrations, has all that the first files make.
insert into tallyhook_migrations (name)
values ('0001_inbox'), ('0002_mirror'), ('0003_receiver'), ('0004_reconcile'), ('0005_reports'), ('0006_alerts');

-- Nothing makes it any more. A database of a later version has a record of what to drop.
drop function if exists reports.mrr_at(timestamptz, timestamptz);
