import { expect, test } from "vitest";
import { recordEditedRows } from "../../src/parts/reconcile/findings/drift-findings.ts";
import { acknowledgeFinding } from "../../src/parts/reconcile/findings/findings.ts";
import { applyHeal, proposeHeal } from "../../src/parts/reconcile/heal-object.ts";
import type { Resource } from "../../src/core/mirror/snapshot.ts";
import { useWalkedService } from "./use-walked-service.ts";
import { byCommand } from "../support/by-command.ts";

const walked = useWalkedService();
const tables: Readonly<Record<string, Resource>> = {
  orders: "order",
  transactions: "transaction",
  subscriptions: "subscription",
  customers: "customer",
};
/** Who brought a state here is told by nobody else; and a read of the same state is a later look at it. */
const unshown = new Set(["id", "last_cause"]);

interface ColumnRow {
  table: string;
  column: string;
  type: string;
}

async function columnsOf(): Promise<ColumnRow[]> {
  const { rows } = await walked.stand.database.db.raw<{ rows: ColumnRow[] }>(
    `select table_name as table, column_name as column, data_type as type from information_schema.columns
     where table_schema = 'mirror' and table_name = any(?) order by table_name, ordinal_position`,
    [Object.keys(tables)],
  );
  return rows.filter(({ column }) => !unshown.has(column));
}

const otherValue = ({ column, type }: ColumnRow): string => {
  if (column.endsWith("version")) return `'9999-01-01T00:00:00.000000Z|-|9|ffffffffffffffffffffffffffffffff'`;
  switch (type) {
    case "bigint":
    case "integer":
      return "77";
    case "boolean":
      return "true";
    case "jsonb":
      return `'{"spoiled": true}'`;
    case "text":
      return "'spoiled'";
    default:
      return "timestamptz '2001-02-03 04:05:06Z'";
  }
};

/** What is compared: everything but when somebody looked, which a version keeps after the time of the change. */
async function rowText(table: string, id: string): Promise<Record<string, unknown>> {
  const { rows } = await walked.stand.database.db.raw<{ rows: { row: Record<string, unknown> }[] }>(
    `select to_jsonb(t) - 'last_cause' as row from mirror.${table} t where id = ?`,
    [id],
  );
  const entries = Object.entries(rows[0]?.row ?? {}).map(([column, value]) => [
    column,
    column.endsWith("version") && typeof value === "string" ? value.slice(0, 27) : value,
  ]);
  return Object.fromEntries(entries) as Record<string, unknown>;
}

test("whatever column of a row is spoiled by hand, two full runs heal it, or the finding says what does", async () => {
  const { stand, service } = walked;
  const { db } = stand.database;
  const silent: string[] = [];
  const byHand: string[] = [];
  const left: string[] = [];
  let skewMs = 0;
  const later = () => void (service.quirks = { skewMs: (skewMs += 5_000) });
  const columns = await columnsOf();
  const present = [];
  for (const one of columns) {
    const row = await db(`mirror.${one.table}`).orderBy("id").first<{ id: string } | undefined>("id");
    if (row !== undefined) present.push({ ...one, id: row.id });
  }
  // All rows of a table are spoiled at once, a column each, so that the runs are two and not two hundred.
  const spoiled: { table: string; column: string; id: string; before: Record<string, unknown> }[] = [];
  for (const table of Object.keys(tables)) {
    const ids = await db(`mirror.${table}`).orderBy("id").pluck<string[]>("id");
    const own = present.filter((one) => one.table === table);
    for (const [n, one] of own.entries()) {
      const id = ids[n];
      if (id === undefined) continue;
      spoiled.push({ ...one, id, before: await rowText(table, id) });
      await db.raw(`update mirror.${table} set ${one.column} = ${otherValue(one)} where id = ?`, [id]);
    }
  }
  expect(spoiled.length).toBeGreaterThan(50);
  later();
  await stand.run();
  later();
  await stand.run();
  for (const { table, column, id, before } of spoiled) {
    if (JSON.stringify(await rowText(table, id)) === JSON.stringify(before)) continue;
    const resource = tables[table] ?? "order";
    const [finding] = await db("reconcile.findings").where({ resource, object_id: id }).whereNot("state", "healed");
    if (finding?.evidence.remedy === undefined) silent.push(`${table}.${column}`);
    else byHand.push(`${table}.${column}`);
    const proposal = await proposeHeal(stand.deps, { resource, id });
    expect(await applyHeal(stand.deps, proposal, { by: "ann", reason: "spoiled" })).toBe(true);
    if (JSON.stringify(await rowText(table, id)) !== JSON.stringify(before)) left.push(`${table}.${column}`);
  }
  // Neither healed nor told of is nothing.
  expect({ silent, left }).toEqual({ silent: [], left: [] });
  expect(byHand).toContain("orders.version");
});

test("a row edited in columns that no read compares stays a finding until all rows are checked, or it is healed", async () => {
  const { stand, service } = walked;
  const { db } = stand.database;
  const now = new Date();
  const never = "9999-01-01T00:00:00.000000Z";
  await db("mirror.orders").where("id", "order-0001").update({ deleted_at: now });
  await db("mirror.orders").where("id", "order-0002").update({ deleted_at: now });
  await db("mirror.orders")
    .where("id", "order-0003")
    .update({ version: db.raw("? || substr(version, 28)", [never]) });
  const states = () =>
    db("reconcile.findings").where("class", "edited_row").orderBy("object_id").select("object_id", "state");
  const open = (n: number) => ({ object_id: `order-000${n}`, state: "open" });
  const healed = (n: number) => ({ object_id: `order-000${n}`, state: "healed" });
  let skewMs = 60_000;
  const run = (kind: "full" | "nightly" | "range") => {
    service.quirks = { skewMs: (skewMs += 5_000) };
    return stand.run({ kind });
  };
  try {
    await run("full");
    expect(await states()).toEqual([open(1), open(2), open(3)]);
    for (const kind of ["nightly", "range", "nightly"] as const) {
      expect((await run(kind)).totals).toMatchObject({ left: { edited_row: 3 }, healed: {} });
    }
    expect(await states()).toEqual([open(1), open(2), open(3)]);

    const proposal = await proposeHeal(stand.deps, { resource: "order", id: "order-0003" });
    await applyHeal(stand.deps, proposal, { by: "ann", reason: "edited by hand" });
    expect(await states()).toEqual([open(1), open(2), healed(3)]);

    await db("mirror.orders").where("id", "order-0002").update({ deleted_at: null });
    expect((await run("full")).totals).toMatchObject({
      left: { edited_row: 1 },
      healed: { edited_row: 1 },
    });
    expect(await states()).toEqual([open(1), healed(2), healed(3)]);

    const [{ id }] = await db("reconcile.findings").where("object_id", "order-0001").select("id");
    await acknowledgeFinding(db, { id, by: byCommand("ann"), note: "known", at: now });
    expect((await run("full")).totals).toMatchObject({ left: {}, acknowledged: { edited_row: 1 } });
  } finally {
    service.quirks = {};
    await db("mirror.orders").update({ deleted_at: null });
    await db("reconcile.findings").delete();
  }
});

test("of a fault that is in every row, every row is told of, and every row that is right again is healed", async () => {
  const { db } = walked.stand.database;
  await db.raw(
    `insert into mirror.orders (id, version, content_hash, deleted_at, last_cause)
     select 'x' || lpad(n::text, 5, '0'), version, content_hash, now(), last_cause
     from mirror.orders cross join generate_series(1, 2500) n where id = 'order-0001'`,
  );
  const count = (state: string) =>
    db("reconcile.findings").where({ class: "edited_row", state }).count("* as n").first();
  await recordEditedRows(db, { run: null, seenAt: new Date() });
  expect(await count("open")).toEqual({ n: "2500" });
  await db("mirror.orders").whereLike("id", "x%").delete();
  await recordEditedRows(db, { run: null, seenAt: new Date(Date.now() + 1) });
  expect(await count("open")).toEqual({ n: "0" });
  await db("reconcile.findings").delete();
});
