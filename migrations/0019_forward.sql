-- Destinations of forwarding are run as handlers are. What each of them reads, and a pause that its subscriber asks for.

-- harmless: a row for each handler, a few in all
alter table dispatch.handlers
  add column source text not null default 'changes' check (source in ('changes', 'webhooks'));
comment on column dispatch.handlers.source is 'Whose numbers the position is one of: the feed''s changes, or the inbox'' events.';

-- harmless: the next statement allows what it allowed, and more
alter table dispatch.handlers drop constraint handlers_paused_by_check;
-- harmless: the same few rows
alter table dispatch.handlers add constraint handlers_paused_by_check
  check (paused_by in ('person', 'failures', 'subscriber'));
