import { createHash } from "node:crypto";
import type { Knex } from "knex";
import type { BrokenMember, Member } from "./close-manifest.ts";

/** Takes lines as they come, without their line breaks; the next ones wait until it is done with these. */
export type TakeLines = (lines: readonly string[]) => Promise<void> | void;

/** A row was left out, put in or moved. */
export class MisnumberedError extends Error {}

/** A part of a close that gives its lines, however many, in little memory. */
export interface MemberSource {
  name: string;
  /** Throws `MisnumberedError` where its rows are not numbered as they were frozen. */
  read(take: TakeLines): Promise<void>;
}

export const evidenceKinds = ["currencies", "runs", "coverage", "findings"] as const;
export type EvidenceKind = (typeof evidenceKinds)[number];

export const rowsMember = (report: string): string => `reports/${report}/rows`;

/** Everything that is stored of a close but its own row in `reports.closes`, in the order of the manifest. */
export async function storedMembers(db: Knex, close: string): Promise<MemberSource[]> {
  const reports = await db("reports.closed_reports")
    .where({ close })
    .orderBy("report")
    .pluck<string[]>("report");
  return [
    ...reports.flatMap((report) => reportMembers(db, close, report)),
    {
      name: "movements",
      read: (take) =>
        readLines(db, movementLines("reports.closed_movements m where m.close = ?"), [close], take),
    },
    ...evidenceKinds.map((kind) => evidenceMember(db, close, kind)),
  ];
}

// What somebody put there by force may be no list.
const elements = `jsonb_array_elements(
  case jsonb_typeof(r.columns) when 'array' then r.columns else jsonb_build_array(r.columns) end)`;

function reportMembers(db: Knex, close: string, report: string): MemberSource[] {
  const one = "from reports.closed_reports r where r.close = ? and r.report = ?";
  const key = [close, report];
  const source = (name: string, ...statements: string[]): MemberSource => ({
    name: `reports/${report}/${name}`,
    async read(take) {
      for (const sql of statements) await readLines(db, sql, key, take);
    },
  });
  return [
    source(
      "about",
      `select jsonb_build_object('about', r.about, 'row_count', r.row_count, 'sha256', r.sha256)::text as line ${one}`,
    ),
    source(
      "columns",
      `select c.value::text as line
       from (select r.columns ${one}) r, ${elements} with ordinality as c(value, n) order by c.n`,
    ),
    // The hash of these lines is the one that is printed on the report (row-hash.ts).
    source(
      "rows",
      `select array_to_json(array(
         select c.value->>'name' from ${elements} with ordinality as c(value, n) order by c.n
       ))::text as line ${one}`,
      `select w.n, array_to_json(w.cells)::text as line from reports.closed_rows w
       where w.close = ? and w.report = ? order by w.n`,
    ),
  ];
}

export function rowsOfReport(db: Knex, close: string, report: string): MemberSource {
  const found = reportMembers(db, close, report).find(({ name }) => name === rowsMember(report));
  if (found === undefined) throw new Error(`there are no rows of ${report}`);
  return found;
}

export function evidenceMember(db: Knex, close: string, kind: EvidenceKind): MemberSource {
  return {
    name: kind,
    read: (take) =>
      readLines(
        db,
        `select e.n, e.content::text as line from reports.closed_evidence e where e.close = ? and e.kind = ? order by e.n`,
        [close, kind],
        take,
      ),
  };
}

/** SQL of a time as text: every digit that the database keeps, whatever the session's settings. */
export const utcText = (time: string): string =>
  `to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

/** The lines of movements, from where they are frozen or from where they will be taken. Sorted, since they have no number. */
export const movementLines = (source: string): string =>
  `select array_to_json(array[m.movement, m.kind, m.object_id, m.order_id, ${utcText("m.at")}, ${utcText("m.booked_at")},
            m.is_late::text, m.currency, m.amount::text])::text collate "C" as line
   from ${source} order by line`;

const linesAtOnce = 5_000;

/** Gives the lines of a statement to `take`. A statement that also gives `n` must number them 1, 2, 3. */
export async function readLines(
  db: Knex,
  sql: string,
  bindings: readonly string[],
  take: TakeLines,
): Promise<void> {
  // A cursor needs a transaction; within one, this is a savepoint.
  await db.transaction(async (trx) => {
    await trx.raw(`declare member_lines no scroll cursor for ${sql}`, [...bindings]);
    for (let before = 0; ;) {
      const { rows } = await trx.raw<{ rows: { n?: string; line: string }[] }>(
        `fetch ${linesAtOnce} from member_lines`,
      );
      if (rows.length === 0) break;
      for (const { n } of rows) {
        before += 1;
        if (n === undefined || Number(n) === before) continue;
        throw new MisnumberedError(`line ${before} is numbered ${n}`);
      }
      await take(rows.map(({ line }) => line));
    }
    await trx.raw("close member_lines");
  });
}

/** Reads a member to its end and says what its line in the manifest is; `take` gets the lines, too. */
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
