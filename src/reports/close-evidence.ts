import type { Knex } from "knex";
import type { EvidenceKind } from "./close-members.ts";
import { isFresh } from "./verdict.ts";

/**
 * Freezes what a close rests on, as it stood: which slices of the service's lists were read and by which runs, what
 * was found and neither healed before the month nor gone, who acknowledged it, with the hash of the note that says
 * why, and the decimals that amounts are printed with. It holds no values of objects and no text that a person wrote,
 * so that an erasure has nothing to take out. In the transaction of the close.
 */
export async function freezeEvidence(
  trx: Knex.Transaction,
  close: string,
  { asOf, fromUtc }: { asOf: string; fromUtc: string },
): Promise<void> {
  // Times in JSON are written in the session's zone.
  await trx.raw("select set_config('TimeZone', 'UTC', true)");
  await freezeKind(
    trx,
    { close, kind: "currencies", order: `content->>'code' collate "C"` },
    "select jsonb_build_object('code', code, 'exponent', exponent) as content from reports.currencies",
    [],
  );
  await freezeKind(trx, { close, kind: "coverage", order: bySlice }, coverageQuery, [asOf, asOf]);
  await freezeKind(trx, { close, kind: "runs", order: byId }, runsQuery, [asOf, close]);
  await freezeKind(trx, { close, kind: "findings", order: byId }, findingsQuery, [asOf, fromUtc]);
}

const bySlice = `(content->>'run')::bigint, (content->>'slice')::bigint, content::text collate "C"`;
const byId = "(content->>'id')::bigint";

const coverageQuery = `
  select to_jsonb(s) || jsonb_build_object('step', c.step, 'path', c.path, 'filter', c.filter, 'pages', c.pages,
                                           'rows', c.rows) as content
  from reports.read_slices(?) s left join reconcile.coverage c on c.run = s.run and c.slice = s.slice
  where ${isFresh("s", "?::timestamptz")}`;

/** As they were then: a run that is taken up again later has another state, and another end. */
const runsQuery = `
  select jsonb_build_object('id', r.id, 'run_key', r.run_key, 'kind', r.kind, 't0', r.t0, 'started_at', r.started_at,
                            'finished_at', ended.at, 'state', known.state) as content
  from reconcile.runs r
  cross join (select cast(? as timestamptz) as at) as_of
  cross join lateral (
    select s.state from reconcile.run_states s
    where s.run = r.id and s.recorded_at <= as_of.at order by s.recorded_at desc, s.id desc limit 1
  ) known
  cross join lateral (
    select max(s.recorded_at) as at from reconcile.run_states s
    where s.run = r.id and s.recorded_at <= as_of.at and s.state <> 'running'
  ) ended
  where r.id in (select (e.content->>'run')::bigint from reports.closed_evidence e
                 where e.close = ? and e.kind = 'coverage')
    or r.id = (select max(l.run) from reconcile.run_states l where l.state <> 'running' and l.recorded_at <= as_of.at)`;

/** Anything may stand in a note and in the name of a field that is not the interface's, and a close is for ever. */
const findingsQuery = `
  with known_fields as (
    select distinct column_name::text from information_schema.columns where table_schema = 'mirror'
  )
  select jsonb_build_object(
           'id', f.finding,
           'fields', (select jsonb_agg(coalesce(k.column_name, 'another field'))
                      from jsonb_array_elements(f.content->'differences') with ordinality d(difference, n)
                      left join known_fields k on k.column_name = d.difference->>'field'),
           'ack_note_sha256', encode(sha256(convert_to(f.content->>'ack_note', 'UTF8')), 'hex')
         ) || (select jsonb_object_agg(key, value) from jsonb_each(f.content) where key = any('{
           key,class,identity,severity,resource,object_id,state,first_seen,last_seen,healed_at,cause,
           amount_at_risk_minor,currency,run,object_at,ack_by,ack_at}')) as content
  from (
    select distinct on (v.finding) v.finding, v.content from reconcile.finding_versions v
    where v.recorded_at <= ?::timestamptz order by v.finding, v.recorded_at desc, v.id desc
  ) f
  where f.content->>'healed_at' is null or (f.content->>'healed_at')::timestamptz >= ?::timestamptz`;

async function freezeKind(
  trx: Knex.Transaction,
  { close, kind, order }: { close: string; kind: EvidenceKind; order: string },
  query: string,
  bindings: readonly string[],
): Promise<void> {
  await trx.raw(
    `insert into reports.closed_evidence (close, kind, n, content)
     select ?, ?, row_number() over (order by ${order}), content from (${query}) evidence`,
    [close, kind, ...bindings],
  );
}
