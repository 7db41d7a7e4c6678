import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { recordFindings } from "../../../src/parts/reconcile/findings/findings.ts";
import type { ReportFacts } from "../../../src/parts/reports/base/report-facts.ts";
import { defaultAccounts } from "../../../src/parts/reports/base/account-map.ts";
import { findReport } from "../../../src/parts/reports/catalogue/all.ts";
import { closeMonth } from "../../../src/parts/reports/close/close-month.ts";
import { findFrozen, readFrozen } from "../../../src/parts/reports/close/frozen.ts";
import { manifestText, membersOf, sha256Of } from "../../../src/parts/reports/close/manifest.ts";
import { digestOf, storedMembers } from "../../../src/parts/reports/close/members.ts";
import { readCloses, resultsSha256, rowsSha256, verifyCloses } from "../../../src/parts/reports/close/verify.ts";
import { type TestDatabase, createTestDatabase } from "../../support/database.ts";
import { coverAll } from "../coverage.ts";
import { letTimePass } from "../sandbox-history.ts";
import { mirrorSales } from "../shop.ts";

let database: TestDatabase;
const timeZone = "Europe/Berlin";
const may = { from: "2025-05-01", to: "2025-05-31", timeZone };
const frozen = ["closes", "closed_reports", "closed_rows", "closed_movements", "closed_evidence"];

const close = (month: string) =>
  closeMonth(database.db, { month, timeZone, accounts: defaultAccounts, reason: null, by: "anna" });

/** What somebody does who may do everything: triggers and constraints are no hindrance. */
const byForce = (...statements: string[]) =>
  database.db.transaction(async (trx) => {
    await trx.raw("set local session_replication_role = replica");
    for (const sql of statements) await trx.raw(sql.replaceAll("?", "\\?"));
  });

const readReport = async (name: string): Promise<ReportFacts> => {
  const found = await findFrozen(database.db, may, findReport(name));
  if (found === null) throw new Error(`${name} of May is not frozen`);
  return readFrozen(database.db, found, null, () => {});
};

/** All that `close verify` has to say. */
async function problems(): Promise<string[]> {
  const { closes, problems: others } = await verifyCloses(database.db);
  return [...closes.flatMap(({ month, problems: own }) => own.map((p) => `${month}: ${p}`)), ...others];
}

const backUp = () => byForce(...frozen.map((t) => `create table backup_${t} as table reports.${t}`));
const putBack = () =>
  byForce(...frozen.flatMap((t) => [`delete from reports.${t}`, `insert into reports.${t} select * from backup_${t}`]));

beforeAll(async () => {
  database = await createTestDatabase();
  const { db } = database;
  await mirrorSales(db, [
    { nth: 1, at: "2025-05-10T10:00:00Z", amount: 1000 },
    { nth: 2, at: "2025-05-20T10:00:00Z", amount: 500, currency: "kwd" },
    { nth: 3, at: "2025-06-02T10:00:00Z", amount: 70 },
  ]);
  await coverAll(db, "2025-07-01T00:00:00Z");
  await recordFindings(db, { run: null, seenAt: new Date("2025-05-12T00:00:00Z") }, [
    {
      key: "late:order:1",
      class: "behind",
      identity: null,
      severity: "high",
      resource: "order",
      objectId: "1",
      differences: [{ field: "email", service: "somebody@example.com", mirror: "other@example.com" }],
      amountAtRiskMinor: 5n,
      currency: "usd",
      cause: "late",
      evidence: {},
    },
  ]);
  await db("reconcile.findings").update({
    ack_by: "otto",
    ack_at: "2025-06-03",
    ack_note: "known",
  });
  await letTimePass(db);
  await close("2025-05");
  await letTimePass(db);
  await close("2025-06");
  await letTimePass(db);
  // As a superuser would, before he writes what they forbid.
  const { rows } = await db.raw<{ rows: { sql: string }[] }>(
    `select format('alter table %s drop constraint %I', conrelid::regclass, conname) as sql from pg_constraint
     where connamespace = 'reports'::regnamespace and contype = 'c' and conrelid::regclass::text like 'reports.close%'`,
  );
  await byForce(...rows.map(({ sql }) => sql));
  await backUp();
});
afterAll(() => database.destroy());

/** SQL that changes a value of a type. */
const changed: Readonly<Record<string, (column: string) => string>> = {
  text: (c) => `coalesce(${c}, '') || 'x'`,
  bigint: (c) => `${c} + 1000000`,
  boolean: (c) => `not ${c}`,
  date: (c) => `(${c} + interval '1 year')::date`,
  "timestamp with time zone": (c) => `${c} + interval '1 microsecond'`,
  ARRAY: (c) => `${c}[1:1] || 'x'::text || ${c}[3:]`,
  jsonb: (c) => `jsonb_build_array(${c})`,
};

/** Rows of each kind: one of each. `read`: the report that shows it. */
const rowKinds: readonly { table: string; where: string; read: string; names: RegExp }[] = [
  { table: "closes", where: "id = 1", read: "month-end", names: /^2025-0[56]: / },
  { table: "closes", where: "id = 2", read: "month-end", names: /^2025-06: |^2026-06: / },
  ...["month-end", "exceptions"].flatMap((report) => [
    {
      table: "closed_reports",
      where: `close = 1 and report = '${report}'`,
      read: report,
      names: new RegExp(`^2025-05: reports/${report}/(about|columns|rows)`),
    },
    {
      table: "closed_rows",
      where: `close = 1 and report = '${report}' and n = 1`,
      read: report,
      names: new RegExp(`^2025-05: reports/${report}/rows`),
    },
  ]),
  {
    table: "closed_movements",
    where: "ctid = (select min(ctid) from reports.closed_movements where close = 1)",
    read: "month-end",
    names: /^2025-05: movements/,
  },
  ...["currencies", "runs", "coverage", "findings"].map((kind) => ({
    table: "closed_evidence",
    where: `close = 1 and kind = '${kind}' and n = 1`,
    read: "month-end",
    names: new RegExp(`^2025-05: ${kind}`),
  })),
];

/** Both ways of looking, after a change: what they say. */
async function noticed(read: string): Promise<{ verify: string[]; reading: string }> {
  const reading = await readReport(read).then(
    () => "nothing",
    (error: unknown) => String(error),
  );
  return { verify: await problems(), reading };
}

test("an untouched chain of closes is intact, and every report of it can be read", async () => {
  expect(await problems()).toEqual([]);
  expect((await readReport("month-end")).close).toMatchObject({
    month: "2025-05",
    closedBy: "anna",
  });
});

test("every table of schema reports is frozen with a close, or no part of what a closed month prints", async () => {
  const { rows } = await database.db.raw<{ rows: { name: string }[] }>(
    `select table_name as name from information_schema.tables
     where table_schema = 'reports' and table_type = 'BASE TABLE'`,
  );
  // Currencies are frozen as evidence; groups and thresholds are in the rows of reports; mailings say what was sent.
  const others = [
    "currencies",
    "decline_groups",
    "network_thresholds",
    "preparations",
    "preparation_ends",
    "closings",
    "mailings",
  ];
  expect(rows.map(({ name }) => name).toSorted()).toEqual([...frozen, ...others].toSorted());
});

test.each(rowKinds)(
  "a change of any column of $table where $where is noticed and named",
  async ({ table, where, read, names }) => {
    const { db } = database;
    const { rows: columns } = await db.raw<{ rows: { name: string; type: string }[] }>(
      `select column_name as name, data_type as type from information_schema.columns
       where table_schema = 'reports' and table_name = ? order by ordinal_position`,
      [table],
    );
    expect(columns.length).toBeGreaterThan(3);
    for (const { name, type } of columns) {
      const change = changed[type];
      if (change === undefined) throw new Error(`the test cannot change a ${type}`);
      await byForce(`update reports.${table} set ${name} = ${change(name)} where ${where}`);
      const { verify, reading } = await noticed(read);
      await putBack();
      expect(verify.join("\n"), `${table}.${name}`).toMatch(new RegExp(names, "m"));
      expect(reading, `${table}.${name}`).toMatch(/^BrokenSealError: The close.* not match what was sealed: \S/);
    }
    await byForce(`delete from reports.${table} where ${where}`);
    const { verify } = await noticed(read);
    await putBack();
    expect(verify, `${table}: a row is deleted`).not.toEqual([]);
    expect(await problems()).toEqual([]);
  },
  120_000,
);

test.each([
  ["closed_at", /closed_at is "2025|closed_at is "20/],
  ["closed_by", /closed_by is "annax", but "anna" was sealed/],
  ["reason", /reason is "x", but nothing was sealed/],
  ["time_zone", /time_zone is "Europe\/Berlinx", but "Europe\/Berlin" was sealed/],
  ["as_of", /as_of is /],
])("of the facts of a close, %s is named with both values", async (column, message) => {
  const type = column.endsWith("_at") || column === "as_of" ? "timestamp with time zone" : "text";
  await byForce(`update reports.closes set ${column} = ${changed[type]?.(column)} where id = 2`);
  const { verify, reading } = await noticed("month-end");
  await putBack();
  expect(verify).toEqual([expect.stringMatching(message)]);
  expect(reading).toMatch(message);
});

test("every value that stands above a report, and how each column is read, is sealed", async () => {
  const { db } = database;
  const [row] = await db("reports.closed_reports").where({ close: 1, report: "month-end" });
  for (const column of ["about", "columns"]) {
    const value: unknown = row[column];
    for (const path of leaves(value)) {
      const at = `'{${path.join(",")}}'`;
      await byForce(
        `update reports.closed_reports set ${column} = jsonb_set(${column}, ${at}, '"other"')
         where close = 1 and report = 'month-end'`,
      );
      const { verify, reading } = await noticed("month-end");
      await putBack();
      expect(verify, path.join(".")).toContainEqual(expect.stringMatching(`^2025-05: reports/month-end/${column}`));
      expect(reading, path.join(".")).toMatch(`reports/month-end/${column}`);
    }
  }
});

const leaves = (value: unknown): string[][] =>
  value !== null && typeof value === "object"
    ? Object.entries(value).flatMap(([key, inner]) => leaves(inner).map((path) => [key, ...path]))
    : [[]];

test.each([
  [
    "a movement twice",
    "insert into reports.closed_movements select * from reports.closed_movements where close = 1 limit 1",
    /movements has \d+ lines, but \d+ were sealed/,
  ],
  [
    "a row too many",
    `insert into reports.closed_rows select close, report, 1 + (select max(n) from reports.closed_rows
       where close = 1 and report = 'month-end'), cells
     from reports.closed_rows where close = 1 and report = 'month-end' and n = 1`,
    /reports\/month-end\/rows has \d+ lines/,
  ],
  [
    "a report too many",
    `insert into reports.closed_reports select close, 'profit', columns, about, row_count, sha256
     from reports.closed_reports where close = 1 limit 1`,
    /reports\/profit\/about is stored, but was not sealed/,
  ],
  [
    "two rows in another order",
    "update reports.closed_rows set n = 1 - n + 2 where close = 1 and report = 'daily-control' and n in (1, 2)",
    /reports\/daily-control\/rows/,
  ],
  [
    "movements of no close",
    "update reports.closed_movements set close = 9 where close = 2",
    /closed_movements has rows of a close/,
  ],
])("%s is noticed", async (_what, sql, message) => {
  if (sql.includes("set n"))
    await byForce("alter table reports.closed_rows drop constraint if exists closed_rows_pkey cascade");
  await byForce(sql);
  const found = await problems();
  await putBack();
  expect(found.join("\n")).toMatch(message);
});

describe("whoever seals a changed close again", () => {
  /** Makes the manifest of a close say what is stored. */
  async function forge(id: string): Promise<void> {
    const { db } = database;
    const members = [];
    for (const source of await storedMembers(db, id)) {
      const member = await digestOf(source);
      if (!("problem" in member)) members.push(member);
    }
    const found = (await readCloses(db)).find(({ facts }) => facts.snapshot === id);
    if (found === undefined) throw new Error("there is no such close");
    const manifest = manifestText({ facts: found.facts, members });
    expect(membersOf(manifest)).toHaveLength(members.length);
    await db.transaction(async (trx) => {
      await trx.raw("set local session_replication_role = replica");
      await trx("reports.closes")
        .where({ id })
        .update({ manifest, sha256: sha256Of(manifest) });
    });
  }

  test("breaks the link of the next one", async () => {
    await byForce("update reports.closed_movements set amount = amount + 1 where close = 1");
    await forge("1");
    const found = await problems();
    await putBack();
    expect(found).toEqual([expect.stringMatching(/^2025-06: it was sealed after another close than 2025-05/)]);
  });

  test("cannot take the seal off a close that follows a sealed one", async () => {
    await byForce(
      `update reports.closes set sha256_covers = 'rows', manifest = null, closed_by = null, previous_sha256 = null
       where id = 2`,
    );
    const found = await problems();
    await putBack();
    expect(found[0]).toMatch(/^2025-06: it is marked as closed by an earlier version/);
  });

  test("cannot remove the first or the middle of the chain", async () => {
    await byForce(...frozen.map((t) => `delete from reports.${t} where ${t === "closes" ? "id" : "close"} = 1`));
    const { verify } = await noticed("month-end");
    await putBack();
    expect(verify).toEqual([expect.stringMatching(/^2025-06: it was sealed after another close, which is missing/)]);
  });
});

test("no month is closed on top of movements that were changed", async () => {
  await byForce("update reports.closed_movements set amount = amount + 1 where close = 1");
  await expect(close("2025-07")).rejects.toThrow("The close of 2025-05 does not match what was sealed: movements");
  await putBack();
});

test("amounts of a closed month are printed with the decimals that they were closed with", async () => {
  const { db } = database;
  await db("reports.currencies").where({ code: "kwd" }).update({ exponent: 2 });
  const found = await findFrozen(db, may, findReport("month-end"));
  await db("reports.currencies").where({ code: "kwd" }).update({ exponent: 3 });
  expect(found?.exponents?.get("kwd")).toBe(3);
});

test("the evidence holds who acknowledged what and which fields differed, and no values of them", async () => {
  const rows = await database.db("reports.closed_evidence").where({ close: 1 }).select("kind", "content");
  const of = (kind: string) => rows.filter((row) => row.kind === kind).map(({ content }) => content as object);
  expect(of("findings")).toMatchObject([
    {
      key: "late:order:1",
      fields: ["email"],
      ack_by: "otto",
      ack_note_sha256: createHash("sha256").update("known").digest("hex"),
      state: "open",
    },
  ]);
  expect(of("runs")).toMatchObject([{ state: "complete" }]);
  expect(of("coverage")).toHaveLength(4);
  expect(JSON.stringify(rows)).not.toContain("example.com");
});

describe("a close of an earlier version", () => {
  const about = (report: string, sha256: string) => ({
    report,
    period: { from: "2025-05-01", to: "2025-05-31", timeZone, fromUtc: "a", toUtc: "b" },
    proof: {
      verdict: "PASS" as const,
      coveragePercent: "100.00",
      readUntil: null,
      lastRun: "1",
      openFindings: "0",
      openWarnings: "2",
    },
    rows: 3,
    sha256,
  });
  const facts = {
    month: "2025-05",
    timeZone,
    asOf: "2025-06-02T00:00:00.000Z",
    verdict: "PASS",
    reason: null,
  };

  test("has the hash that it always had", () => {
    const reports = [about("refunds", "11"), about("month-end", "22")];
    expect(resultsSha256(facts, reports)).toBe("a758dcffe4a5bb2781e86333ca6b24f0f1e309d7e60551e45b5cefcd83ec4abb");
    expect(rowsSha256(reports)).toBe("2b699bfb061aafd5ed0334898e0e46e6bc8b51883bfc57679054774ed4e0a40f");
  });

  test.each(["results", "rows"] as const)(
    "whose hash covers %s is verified by it, is linked by the next one, and can be read",
    async (covers) => {
      const { db } = database;
      const abouts = await db("reports.closed_reports").where({ close: 1 }).pluck<ReportFacts[]>("about");
      const [row] = await db("reports.closes").where({ id: 1 }).select("as_of");
      const asOf = (row.as_of as Date).toISOString();
      const sha256 = covers === "rows" ? rowsSha256(abouts) : resultsSha256({ ...facts, asOf }, abouts);
      await byForce(
        `update reports.closes set sha256 = '${sha256}', sha256_covers = '${covers}', manifest = null,
           closed_by = null where id = 1`,
        "delete from reports.closed_evidence where close = 1",
        `update reports.closes set previous_sha256 = '${sha256}' where id = 2`,
      );
      await forgeSecond();
      try {
        const { closes, problems: others } = await verifyCloses(db);
        expect(closes).toMatchObject([
          { month: "2025-05", covers, closedBy: null, problems: [] },
          { month: "2025-06", covers: "everything", problems: [] },
        ]);
        expect(others).toEqual([]);
        expect((await readReport("month-end")).close).toMatchObject({ closedBy: null, sha256 });
        await byForce("update reports.closed_rows set cells[1] = 'x' where close = 1 and report = 'month-end'");
        expect(await problems()).toEqual(["2025-05: reports/month-end/rows differs from what was signed"]);
        await expect(readReport("month-end")).rejects.toThrow("reports/month-end/rows");
        await byForce("delete from reports.closed_reports where close = 1 and report = 'mrr'");
        await expect(readReport("refunds")).rejects.toThrow("facts or the results of its reports differ");
      } finally {
        await putBack();
      }
    },
  );

  async function forgeSecond(): Promise<void> {
    const second = (await readCloses(database.db))[1];
    const manifest = manifestText({
      facts: second?.facts as NonNullable<typeof second>["facts"],
      members: membersOf(second?.manifest ?? ""),
    });
    await database.db.transaction(async (trx) => {
      await trx.raw("set local session_replication_role = replica");
      await trx("reports.closes")
        .where({ id: 2 })
        .update({ manifest, sha256: sha256Of(manifest) });
    });
  }
});
