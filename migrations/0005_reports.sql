-- What reports are made of besides the mirror: reference data, the months that were closed, and the mails of reports.
-- Money is bigint minor units.
create schema reports;

-- As src/platform/money.ts has them: a test compares the two.
create table reports.currencies (
  code text collate "C" primary key check (code ~ '^[a-z]{3}$'),
  exponent smallint not null
);
comment on table reports.currencies is
  'ISO 4217: how many decimals an amount in minor units has. Of a code that is not here that is not known.';
insert into reports.currencies (code, exponent)
select unnest(string_to_array('bif byr clp djf gnf isk jpy kmf krw pyg rwf ugx uyi vnd vuv xaf xof xpf', ' ')), 0
union all select unnest(string_to_array(
  'aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bmd bnd bob bov brl bsd btn bwp byn bzd cad cdf che chf '
  'chw cny cop cou crc cuc cup cve czk dkk dop dzd eek egp ern etb eur fjd fkp gbp gel ghs gip gmd gtq gyd hkd hnl '
  'hrk htg huf idr ils inr irr jmd kes kgs khr kpw kyd kzt lak lbp lkr lrd lsl ltl lvl mad mdl mga mkd mmk mnt mop '
  'mro mru mur mvr mwk mxn mxv myr mzn nad ngn nio nok npr nzd pab pen pgk php pkr pln qar ron rsd rub sar sbd scr '
  'sdg sek sgd shp sle sll sos srd ssp std stn svc syp szl thb tjs tmt top try ttd twd tzs uah usd usn uss uyu uzs '
  'ved vef ves wst xad xcd xcg yer zar zmk zmw zwg zwl', ' ')), 2
union all select unnest(string_to_array('bhd iqd jod kwd lyd omr tnd', ' ')), 3
union all select unnest(string_to_array('clf uyw', ' ')), 4;

create table reports.decline_groups (
  code text collate "C" primary key,
  code_group text not null
);
insert into reports.decline_groups (code_group, code)
select 'soft', unnest(array['insufficient_funds', 'do_not_honor', 'card_limit_exceeded', 'processor_declined',
                            'issuer_unavailable', 'unknown'])
union all select 'card_data', unnest(array['expired_card', 'incorrect_cvv', 'invalid_account'])
union all select 'account_status', unnest(array['blocked_card', 'closed_card', 'contact_bank',
                                                'transaction_not_allowed'])
union all select 'fraud', unnest(array['lost_stolen_card', 'fraud_suspected'])
union all select 'configuration', unnest(array['duplicate_transaction', 'invalid_merchant_configuration',
                                               'validation_error']);

-- The card networks' programmes, by region. Where VAMP adds fraud reports, which the service does not tell, what is
-- counted here is a lower bound.
create table reports.network_thresholds (
  brand text not null,
  programme text not null,
  valid_from date not null,
  valid_until date,
  -- Both must be reached.
  min_disputes bigint not null,
  min_percent numeric not null,
  -- Whose sales the disputes of a month are divided by.
  basis text not null check (basis in ('same_month', 'previous_month')),
  -- Where the acquirer is; any: everywhere.
  region text not null default 'any' check (region in ('any', 'global', 'lac', 'mena')),
  -- Of the disputes of the month, in minor units; null: no amount has to be reached.
  min_amount bigint,
  min_amount_currency text,
  primary key (brand, programme, region, valid_from),
  check ((min_amount is null) = (min_amount_currency is null))
);
-- Looked up in November 2026:
--
-- - Visa VDMP (until 2025-03-31): standard from 100 disputes and 0.9 %, excessive from 1,000 and 1.8 %, of the month's
--   sales: https://midigator.com/glossary/visa-chargeback-monitoring-program/ and, for its end,
--   https://www.chargebackstop.com/blog/visa-dispute-monitoring-program
-- - Visa VAMP, merchants: acquirers are told from 2025-06-01, fees from 2025-10-01. 2.2 %, from 2026-04-01 on 1.5 % but
--   in MENA; from 1,500 fraud reports and disputes a month, in MENA from 100 and 75,000 USD:
--   https://support.checkout.com/hc/en-us/articles/23330844282514 (June 2025, read as the table stood then)
-- - Latin America and the Caribbean have 1.5 % from the start: https://sharpay.net/?p=38122
-- - In April and May 2025 neither programme had thresholds in force.
insert into reports.network_thresholds
  (brand, programme, region, valid_from, valid_until, min_disputes, min_percent, basis, min_amount, min_amount_currency)
values
  ('visa', 'VDMP', 'any', '2019-10-01', '2025-04-01', 100, 0.9, 'same_month', null, null),
  ('visa', 'VDMP excessive', 'any', '2019-10-01', '2025-04-01', 1000, 1.8, 'same_month', null, null),
  ('visa', 'VAMP', 'global', '2025-06-01', '2026-04-01', 1500, 2.2, 'same_month', null, null),
  ('visa', 'VAMP', 'global', '2026-04-01', null, 1500, 1.5, 'same_month', null, null),
  ('visa', 'VAMP', 'lac', '2025-06-01', null, 1500, 1.5, 'same_month', null, null),
  ('visa', 'VAMP', 'mena', '2025-06-01', null, 100, 2.2, 'same_month', 7500000, 'usd'),
  ('mastercard', 'ECM', 'any', '2019-10-01', null, 100, 1.5, 'previous_month', null, null),
  ('mastercard', 'HECM', 'any', '2019-10-01', null, 300, 3, 'previous_month', null, null);

-- A close is sealed: one manifest lists everything that was frozen with its hash, and the hash of the close before it.
-- Who closed the month, and what its verdict rested on, are frozen too.
create table reports.closes (
  id bigint primary key,
  month date not null unique check (extract(day from month) = 1),
  time_zone text not null,
  from_at timestamptz not null,
  to_at timestamptz not null,
  as_of timestamptz not null,
  closed_at timestamptz not null default clock_timestamp(),
  verdict text not null check (verdict in ('PASS', 'FAIL', 'INCOMPLETE')),
  -- Why it was closed without a PASS.
  reason text,
  sha256 text not null,
  -- 'rows': of the reports' names and the hashes of their rows; 'results': also of what stands above them;
  -- 'everything': of the manifest, and so of all that was frozen.
  sha256_covers text not null default 'rows' check (sha256_covers in ('rows', 'results', 'everything')),
  closed_by text,
  previous_sha256 text,
  manifest text,
  check (verdict = 'PASS' or reason is not null),
  constraint closes_sealed check (
    sha256_covers <> 'everything' or (coalesce(btrim(closed_by), '') <> '' and manifest is not null))
);
comment on column reports.closes.previous_sha256 is 'sha256 of the month before; null for the first close';
comment on column reports.closes.manifest is
  'JSON arrays, a line each: the facts of the close, then each member with its number of lines and their SHA-256.';

create table reports.closed_reports (
  close bigint not null references reports.closes (id) deferrable initially deferred,
  report text collate "C" not null,
  columns jsonb not null,
  about jsonb not null,
  row_count bigint not null,
  sha256 text not null,
  primary key (close, report)
);

create table reports.closed_rows (
  close bigint not null,
  report text collate "C" not null,
  n bigint not null,
  cells text[] not null,
  primary key (close, report, n),
  foreign key (close, report) references reports.closed_reports (close, report) deferrable initially deferred
);

create table reports.closed_movements (
  close bigint not null references reports.closes (id) deferrable initially deferred,
  movement text collate "C" not null,
  kind text not null,
  object_id text collate "C" not null,
  order_id text collate "C",
  at timestamptz not null,
  booked_at timestamptz not null,
  is_late boolean not null,
  currency text not null,
  amount bigint not null
);
create index closed_movements_close on reports.closed_movements (close);
comment on table reports.closed_movements is
  'What was booked in a closed month: with what was learned of months that were closed before, by its own date.';

create table reports.closed_evidence (
  close bigint not null references reports.closes (id) deferrable initially deferred,
  kind text collate "C" not null check (kind in ('currencies', 'runs', 'coverage', 'findings')),
  n bigint not null,
  content jsonb not null,
  primary key (close, kind, n)
);
comment on table reports.closed_evidence is
  'What a close rests on, as it stood: decimals of the currencies, runs and slices that were read, findings with '
  'their acknowledgements.';

-- A row for each period, so that however many workers ask for one, it is sent once.
create table reports.mailings (
  -- 'day:2026-11-20', 'month:2026-10'
  key text collate "C" primary key,
  from_day date not null,
  to_day date not null,
  -- What the mirror said then is mailed: a repeat is the same.
  as_of timestamptz not null,
  -- A repeat carries the same one, so that a mailbox can know it.
  message_id text not null,
  state text not null default 'due' check (state in ('due', 'sent', 'failed')),
  attempts integer not null default 0,
  ordered_at timestamptz not null default now(),
  next_attempt_at timestamptz not null default now(),
  settled_at timestamptz,
  -- What the mail server answered last, as a code.
  error text
);
create index mailings_due on reports.mailings (next_attempt_at) where state = 'due';
