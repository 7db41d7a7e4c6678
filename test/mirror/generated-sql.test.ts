import { join } from "node:path";
import type { Knex } from "knex";
import { beforeAll, describe, expect, test } from "vitest";
import { compareStates } from "../../src/core/mirror/compare/compare-states.ts";
import { handEditedRows } from "../../src/core/mirror/compare/hand-edited-rows.ts";
import { decode, mirrorResources } from "../../src/core/mirror/resources.ts";
import type { Snapshot } from "../../src/core/mirror/snapshot.ts";
import { overwriteObject, readRowBeforeHeal } from "../../src/core/mirror/write/overwrite.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { readableSql, withoutLayout } from "./readable-sql.ts";
import { resourcesSql } from "./resources-sql.ts";
import { apply, at, sampleCustomer, sampleOrder, sampleSubscription, sampleTransaction, seen } from "./samples.ts";

const database = useTestDatabase();

/** A read of each resource, and a later one of the same object. */
const looks: Readonly<Record<string, readonly [first: Snapshot, later: Snapshot]>> = {
  orders: [
    seen("order", sampleOrder({ items: [] }), 60),
    seen("order", sampleOrder({ items: [], status: "refunded", updated_at: at(90) }), 120),
  ],
  transactions: [
    seen("transaction", sampleTransaction(), 60),
    seen("transaction", sampleTransaction({ status: "failed", updated_at: at(90) }), 120),
  ],
  subscriptions: [
    seen("subscription", sampleSubscription(), 60),
    seen("subscription", sampleSubscription({ status: "paused", updated_at: at(90) }), 120),
  ],
  customers: [
    seen("customer", sampleCustomer(), 60),
    seen("customer", sampleCustomer({ first_name: "Joan", updated_at: at(90) }), 120),
  ],
};

interface Kind {
  file: string;
  says: string;
  /** Begins the statement of a table, white space apart. */
  marks(table: string): RegExp;
}

const kinds: readonly Kind[] = [
  {
    file: "upsert",
    says: "Records states in the history and brings the rows up to the newest (write/upsert-statement.ts)",
    marks: (table) => new RegExp(`^with blob .* insert into mirror\\.${table} as t `),
  },
  {
    file: "stored",
    says: "Reads stored rows as few texts, to see that they are equal (compare/stored-rows.ts)",
    marks: (table) => new RegExp(`^select t\\.id as id .* from mirror\\.${table} t where t\\.id = any`),
  },
  {
    file: "compare",
    says: "Holds states against the stored rows, where something may differ (compare/compare-states.ts)",
    marks: (table) => new RegExp(`^with blob .* left join mirror\\.${table} t on `),
  },
  {
    file: "overwrite",
    says: "Has a row yield to what a read shows, when a person decided so (write/overwrite.ts)",
    marks: (table) => new RegExp(`^update mirror\\.${table} set `),
  },
  {
    file: "inconsistent",
    says: "Finds rows with columns that no state explains (compare/hand-edited-rows.ts)",
    marks: (table) => new RegExp(`^select cast \\( .* from mirror\\.${table} t where `),
  },
];

/**
 * Every statement that is sent while the mirror writes, compares, overwrites and checks one object of each resource.
 */
const sent: string[] = [];

beforeAll(async () => {
  const { db } = database;
  db.on("query", ({ sql }: { sql: string }) => void sent.push(sql));
  for (const [first, later] of Object.values(looks)) {
    await apply(db, first);
    await compareStates(db, statesOf(later));
    await overwrite(db, later);
  }
  for await (const rows of handEditedRows(db, "2025-03-02T00:00:00.000000Z"))
    throw new Error(`a row is inconsistent: ${JSON.stringify(rows)}`);
});

function statesOf(observation: Snapshot) {
  const decoded = decode(observation);
  if (!decoded.ok) throw new Error("a sample cannot be read");
  return decoded.states;
}

async function overwrite(db: Knex, observation: Snapshot): Promise<void> {
  const object = { resource: observation.resource, id: String(observation.object["id"]) };
  const observedAt = observation.observedAt ?? "";
  await db.transaction(async (trx) => {
    const shown = {
      states: statesOf(observation),
      observedAt,
      seen: await readRowBeforeHeal(trx, object, observedAt),
    };
    const done = await overwriteObject(trx, object, shown, { by: "ann", reason: "test" });
    expect(done.kind).toBe("written");
  });
}

test("SQL has the resources that the program has", async () => {
  const file = join(import.meta.dirname, "../../src/core/mirror/resources.sql");
  await expect(resourcesSql(mirrorResources)).toMatchFileSnapshot(file);
});

describe.each(Object.keys(looks))("the generated SQL of %s", (table) => {
  test.each(kinds)("to $file is what its file shows", async ({ file, says, marks }) => {
    const ofKind = new Set(sent.filter((sql) => marks(table).test(withoutLayout(sql))));
    expect([...ofKind]).toHaveLength(1);
    const [sql = ""] = ofKind;
    const text = readableSql(sql);
    expect(withoutLayout(text)).toBe(withoutLayout(sql));
    const header = `-- ${says}.\n-- Generated for mirror.${table}; test/mirror/generated-sql.test.ts holds this file against it.\n\n`;
    await expect(header + text).toMatchFileSnapshot(join(import.meta.dirname, "__sql__", `${table}.${file}.sql`));
  });
});
