import { createHash } from "node:crypto";
import type { Knex } from "knex";
import type { BrokenMember, Member } from "./close-manifest.ts";

/** Takes lines as they come, without their line breaks; the next ones wait until it is done with these. */
export type TakeLines = (lines: readonly string[]) => Promise<void> | void;

/** A row was left out, put in or moved. */
class MisnumberedError extends Error {}

/** A part of a close that gives its lines, however many, in little memory. */
export interface MemberSource {
  name: string;
  /** Throws `MisnumberedError` where its rows are not numbered as they were frozen. */
  read(take: TakeLines): Promise<void>;
}

export const evidenceKinds = ["currencies", "runs", "coverage", "findings"] as const;
export type EvidenceKind = (typeof evidenceKinds)[number];

export const rowsMember = (report: string): string => `reports/${report}/rows`;

interface StoredReport {
  report: string;
  about: string;
  /** Of each column; null where there is none. */
  columns: string[] | null;
  /** Of their names. */
  names: string | null;
}

/**
 * What is stored of a close but its own row in `reports.closes`, in the order of the manifest. One statement; reading
 * them takes more.
 */
export async function storedMembers(db: Knex, close: string): Promise<MemberSource[]> {
  const { rows: reports } = await db.raw<{ rows: StoredReport[] }>(
    `select r.report, c.columns, c.names,
            jsonb_build_object('about', r.about, 'row_count', r.row_count, 'sha256', r.sha256)::text as about
     from reports.closed_reports r
     cross join lateral (
       select array_agg(value::text order by n) as columns,
              array_to_json(array_agg(value->>'name' order by n))::text as names
       -- What somebody put there by force may be no list.
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

function reportMembers(
  db: Knex,
  close: string,
  { report, about, columns, names }: StoredReport,
): MemberSource[] {
  return [
    { name: `reports/${report}/about`, read: async (take) => take([about]) },
    { name: `reports/${report}/columns`, read: async (take) => take(columns ?? []) },
    {
      name: rowsMember(report),
      // The hash of these lines is the one that is printed on the report (row-hash.ts).
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

/** SQL of a time as text: every digit that the database keeps, whatever the session's settings. */
export const utcText = (time: string): string =>
  `to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

const linesAtOnce = 5_000;

/** Rows that must be numbered 1, 2, 3, page by page. `sql` gives `n` and `line` and ends in its conditions. */
async function readNumbered(
  db: Knex,
  sql: string,
  bindings: readonly string[],
  take: TakeLines,
): Promise<void> {
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

/** Movements have no number: they are sorted as text. */
async function readMovements(db: Knex, close: string, take: TakeLines): Promise<void> {
  // A cursor needs a transaction; within one, this is a savepoint.
  await db.transaction(async (trx) => {
    await trx.raw(
      `declare movement_lines no scroll cursor for
       select array_to_json(array[m.movement, m.kind, m.object_id, m.order_id, ${utcText("m.at")},
                ${utcText("m.booked_at")}, m.is_late::text, m.currency, m.amount::text])::text collate "C" as line
       from reports.closed_movements m where m.close = ? order by line`,
      [close],
    );
    for (;;) {
      const { rows } = await trx.raw<{ rows: { line: string }[] }>(
        `fetch ${linesAtOnce} from movement_lines`,
      );
      if (rows.length === 0) break;
      await take(rows.map(({ line }) => line));
    }
    await trx.raw("close movement_lines");
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
