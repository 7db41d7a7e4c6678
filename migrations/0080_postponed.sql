-- How often handlers have asked for another time by RetryLater, which counts as no attempt.
alter table dispatch.runs add column postponed integer not null default 0;
comment on column dispatch.runs.postponed is 'How often its handler has asked for another time (RetryLater).';
alter table dispatch.counts add column postponed bigint not null default 0;
comment on column dispatch.counts.postponed is 'How often the handler has asked for another time (RetryLater).';
