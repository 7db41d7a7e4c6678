import { beforeEach, describe, expect, test } from "vitest";
import { findCustomers } from "../../src/core/mirror/find-customers.ts";
import { markErased } from "../../src/core/mirror/privacy/erased-people.ts";
import { eraseRows } from "../../src/core/mirror/privacy/erase-mirror.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { emptyMirror } from "./copies.ts";
import { apply, at, sampleCustomer, shown } from "./samples.ts";

const database = useTestDatabase();
beforeEach(() => emptyMirror(database.db));

const found = async (words: string, address: string | null = null): Promise<string[]> => {
  const { rows } = await findCustomers(database.db, { words, address }, { after: null, limit: 9 });
  return rows.map(({ id }) => id);
};

const frances = sampleCustomer({
  id: "frances",
  first_name: "Frances Anne",
  last_name: "Müller-Ritchie",
  email: "F.Ritchie+tea@Example.com",
});

test.each([
  "Frances",
  "frances ritchie",
  "Ritchie, Frances",
  "RITCH",
  "anne müller",
  "Muller",
  "f.ritchie",
  "ritchie tea",
  "f. ritchie",
])("a customer is found by %s", async (words) => {
  await apply(database.db, shown("customer", frances), shown("customer", sampleCustomer()));
  expect(await found(words)).toEqual(["frances"]);
});

test.each(["example", "rances", "frances doe", "f", "", "' | x:*", "\\", "&!", "%"])(
  "a customer is not found by %j: by a domain, the end of a word, one letter, or what is no word",
  async (words) => {
    await apply(database.db, shown("customer", frances));
    expect(await found(words)).toEqual([]);
  },
);

test("a part of an address has to be its beginning", async () => {
  await apply(database.db, shown("customer", frances));
  expect(await found("f.ritchie+tea", "f.ritchie+tea@exam")).toEqual(["frances"]);
  expect(await found("ritchie", "ritchie@exam")).toEqual([]);
});

test("a list goes on after a customer, the newest first", async () => {
  const customers = [0, 1, 2, 2].map((seconds, n) => sampleCustomer({ id: `c${n}`, created_at: at(seconds) }));
  await apply(database.db, ...customers.map((customer) => shown("customer", customer)));
  expect(await found("jane")).toEqual(["c3", "c2", "c1", "c0"]);
  const { rows } = await findCustomers(database.db, { words: "jane", address: null }, { after: "c3", limit: 2 });
  expect(rows.map(({ id }) => id)).toEqual(["c2", "c1"]);
});

describe("a name that very many have", () => {
  const fill = (n: number) =>
    database.db.raw(
      `insert into mirror.customers (id, first_name, created_at, last_cause)
       select 'c' || n, 'John', timestamptz '2025-03-01' + n * interval '1 second', 'import' from generate_series(1, ?) n`,
      [n],
    );
  const johns = () => findCustomers(database.db, { words: "john", address: null }, { after: null, limit: 2 });

  test("is searched whole up to 500 customers", async () => {
    await fill(500);
    expect(await johns()).toMatchObject({ isCut: false, rows: [{ id: "c500" }, { id: "c499" }] });
  });

  test("is not searched whole where more have it, which the answer says", async () => {
    await fill(501);
    const { isCut, rows } = await johns();
    expect([isCut, rows.length]).toEqual([true, 2]);
  });
});

test("nobody is found by a name after an erasure", async () => {
  await apply(database.db, shown("customer", frances));
  await database.db.transaction(async (trx) => {
    await markErased(trx, "frances");
    await eraseRows(trx, "frances", ["frances"], new Map());
  });
  expect(await found("frances")).toEqual([]);
  expect(await found("ritchie")).toEqual([]);
});

test("a name of any length and any characters is stored, and its beginning is found", async () => {
  const long = sampleCustomer({ id: "long", first_name: "x".repeat(10_000), last_name: "\ud55c\uae00".repeat(3_000) });
  await apply(database.db, shown("customer", long));
  expect(await found("xxxx")).toEqual(["long"]);
});

test("the words of customers are found by their index", async () => {
  const plans: string[] = [];
  await database.db.transaction(async (trx) => {
    await trx.raw("set local enable_seqscan = off");
    const explained = new Proxy(trx, {
      get: (target, name) =>
        name === "raw"
          ? async (sql: string, bindings: Record<string, never>) => {
              const { rows } = await target.raw<{ rows: object[] }>(`explain ${sql}`, bindings);
              plans.push(JSON.stringify(rows));
              return { rows: [] };
            }
          : Reflect.get(target, name),
    });
    await findCustomers(explained, { words: "jane", address: null }, { after: null, limit: 9 });
  });
  expect(plans[0]).toContain("customers_words");
});
