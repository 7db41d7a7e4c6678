-- A run that the service asked to come later says until when: nothing that begins by itself asks before that.
alter table reconcile.runs add column resume_after timestamptz;
comment on column reconcile.runs.resume_after is
  'the service asked the run to wait until then, an hour at most: no nightly or ordered run asks it before; the database''s clock';
