-- Only useless answers end a refetch. Its attempts also count failed calls and early answers, which never end one.
alter table inbox.fetches add column useless_answers integer not null default 0;
comment on column inbox.fetches.useless_answers is
  'answers without a usable object; the refetch is given up after some of them';
