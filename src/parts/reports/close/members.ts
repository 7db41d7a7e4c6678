import { createHash } from "node:crypto";
import type { Knex } from "knex";
import type { BrokenMember, Member } from "./manifest.ts";

/** Takes lines as they come, without line breaks. The next lines wait until it resolves. */
export type TakeLines = (lines: readonly string[]) => Promise<void> | void;

/** A row was removed, inserted or moved. */
class MisnumberedError extends Error {}

/** A part of a close that is read line by line, in little memory at any size. */
export interface MemberSource {
  name: string;
  /** Throws `MisnumberedError` if the rows are not numbered as they were frozen. */
  read(take: TakeLines): Promise<void>;
}

export const evidenceKinds = ["currencies", "runs", "coverage", "findings"] as const;
export type EvidenceKind = (typeof evidenceKinds)[number];

export const rowsMember = (report: string): string => `reports/${report}/rows`;

interface StoredReport {
  report: string;
  about: string;
  /** Each column as JSON; null if there are none. */
  columns: string[] | null;
  /** The column names as a JSON array. */
  names: string | null;
}

/**
 * All that is stored of a close except its row in `reports.closes`, in the order of the manifest. One statement;
 * reading the members takes more.
 */
export async function storedMembers(db: Knex, close: string): Promise<MemberSource[]> {
  const { rows: reports } = await db.raw<{ rows: StoredReport[] }>(
    `select r.report, c.columns, c.names,
            jsonb_build_object('about', r.about, 'row_count', r.row_count, 'sha256', r.sha256)::text as about
     from reports.closed_reports r
     cross join lateral (
       select array_agg(value::text order by n) as columns,
              array_to_json(array_agg(value->>'name' order by n))::text as names
       -- If somebody changed the row by hand, the column may hold something other than an array.
       from jsonb_array_elements(
         case jsonb_typeof(r.columns) when 'array' then r.columns else jsonb_build_array(r.columns) end
       ) with ordinality as x(value, n)
     ) c
     where r.close = ? order by r.report`,
    [close],
  );
  return [
    ...reports.flatMap((report) => reportMembers(db, close, report)),
    { name: "movements", read: (take) => readMovements(db, close, take) },
    ...evidenceKinds.map((kind) => evidenceMember(db, close, kind)),
  ];
}

function reportMembers(db: Knex, close: string, { report, about, columns, names }: StoredReport): MemberSource[] {
  return [
    { name: `reports/${report}/about`, read: async (take) => take([about]) },
    { name: `reports/${report}/columns`, read: async (take) => take(columns ?? []) },
    {
      name: rowsMember(report),
      // The hash of these lines is the one printed on the report (read-report.ts).
      async read(take) {
        await take([names ?? "[]"]);
        await readNumbered(
          db,
          `select n, array_to_json(cells)::text as line from reports.closed_rows where close = ? and report = ?`,
          [close, report],
          take,
        );
      },
    },
  ];
}

export function evidenceMember(db: Knex, close: string, kind: EvidenceKind): MemberSource {
  return {
    name: kind,
    read: (take) =>
      readNumbered(
        db,
        `select n, content::text as line from reports.closed_evidence where close = ? and kind = ?`,
        [close, kind],
        take,
      ),
  };
}

/** SQL for a time as text in UTC: all digits that the database keeps, under any session settings. */
export const utcText = (time: string): string => `to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

const linesAtOnce = 5_000;

/** Reads rows page by page. They must be numbered 1, 2, 3. `sql` gives `n` and `line` and ends with its conditions. */
async function readNumbered(db: Knex, sql: string, bindings: readonly string[], take: TakeLines): Promise<void> {
  let before = 0;
  for (;;) {
    const { rows } = await db.raw<{ rows: { n: string; line: string }[] }>(
      `${sql} ${before === 0 ? "" : "and n > ?"} order by n limit ${linesAtOnce}`,
      [...bindings, ...(before === 0 ? [] : [before])],
    );
    for (const { n } of rows) {
      before += 1;
      if (Number(n) !== before) throw new MisnumberedError(`line ${before} is numbered ${n}`);
    }
    if (rows.length > 0) await take(rows.map(({ line }) => line));
    if (rows.length < linesAtOnce) break;
  }
}

/** Movements have no number, so they are sorted as text. */
async function readMovements(db: Knex, close: string, take: TakeLines): Promise<void> {
  // A cursor needs a transaction. Within a transaction, this is a savepoint.
  await db.transaction(async (trx) => {
    await trx.raw(
      `declare movement_lines no scroll cursor for
       select array_to_json(array[m.movement, m.kind, m.object_id, m.order_id, ${utcText("m.at")},
                ${utcText("m.booked_at")}, m.is_late::text, m.currency, m.amount::text])::text collate "C" as line
       from reports.closed_movements m where m.close = ? order by line`,
      [close],
    );
    for (;;) {
      const { rows } = await trx.raw<{ rows: { line: string }[] }>(`fetch ${linesAtOnce} from movement_lines`);
      if (rows.length === 0) break;
      await take(rows.map(({ line }) => line));
    }
    await trx.raw("close movement_lines");
  });
}

/** Reads a member to its end and returns its line for the manifest. `take` gets the lines, too. */
export async function digestOf(
  { name, read }: MemberSource,
  take: TakeLines = () => {},
): Promise<Member | BrokenMember> {
  const hash = createHash("sha256");
  let count = 0;
  try {
    await read(async (lines) => {
      count += lines.length;
      hash.update(lines.map((line) => `${line}\n`).join(""));
      await take(lines);
    });
  } catch (error) {
    if (error instanceof MisnumberedError) return { name, problem: error.message };
    throw error;
  }
  return { name, lines: count, sha256: hash.digest("hex") };
}

/**
 * Freezes the evidence of a close, as of its time: the slices of the service's lists that were read, with their runs;
 * the findings that were not healed before the month, with the person who acknowledged each and the hash of the note;
 * and the decimals that amounts are printed with. The evidence has no values of objects and no people's texts, so an
 * erasure has nothing to redact. Needs the transaction of the close.
 */
export async function freezeEvidence(
  trx: Knex.Transaction,
  close: string,
  { asOf, fromUtc }: { asOf: string; fromUtc: string },
): Promise<void> {
  // PostgreSQL writes times in JSON in the session's zone.
  await trx.raw("select set_config('TimeZone', 'UTC', true)");
  await freezeKind(
    trx,
    { close, kind: "currencies", order: `content->>'code' collate "C"` },
    "select jsonb_build_object('code', code, 'exponent', exponent) as content from reports.currencies",
    [],
  );
  await freezeKind(trx, { close, kind: "coverage", order: bySlice }, coverageQuery, [asOf]);
  await freezeKind(trx, { close, kind: "runs", order: byId }, runsQuery, [asOf, close]);
  await freezeKind(trx, { close, kind: "findings", order: byId }, findingsQuery, [asOf, fromUtc]);
}

const bySlice = `(content->>'run')::bigint, (content->>'slice')::bigint, content::text collate "C"`;
const byId = "(content->>'id')::bigint";

const coverageQuery = `
  select to_jsonb(s) || jsonb_build_object('step', c.step, 'path', c.path, 'filter', c.filter, 'pages', c.pages,
                                           'rows', c.rows) as content
  from reports.fresh_slices(?) s left join reconcile.coverage c on c.run = s.run and c.slice = s.slice`;

/** Runs as they were then: a run that is resumed later gets another state and another end. */
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

/**
 * Only the hash of a note is kept, and fields that are not columns of the mirror are not named: either may contain
 * personal data, and a close is never deleted.
 */
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
