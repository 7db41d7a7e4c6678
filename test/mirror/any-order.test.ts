import fc from "fast-check";
import type { Knex } from "knex";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { type Random, seededRandom } from "../../src/platform/random.ts";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import {
  type Arrival,
  type SharedRow,
  deliverCopies,
  emptyMirror,
  inBatches,
  mirrorAfter,
  settleCopies,
  sharedRows,
  withoutLog,
} from "./copies.ts";
import { type Expected, type History, copyMark, histories } from "./shop-history.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase({ poolMax: 4 });
  await withoutLog(database.db);
});
afterAll(() => database.destroy());

/** fast-check prints the seed of a failing run; TALLYHOOK_TEST_SEED repeats it, TALLYHOOK_TEST_RUNS=50 runs longer. */
const given = process.env["TALLYHOOK_TEST_SEED"];
const seed = given === undefined ? {} : { seed: Number(given) };
const longer = Number(process.env["TALLYHOOK_TEST_RUNS"] ?? 1);

/** `npm run torture` does more orders of the same histories. */
const isTorture = inject("isTorture");
const permuted = isTorture ? 7 : 6;
const shuffles = isTorture ? 500 : 50;
const fewPermuted = isTorture ? 60 : 30;
const shuffledHistories = 20;

/** Without shrinking: a run takes seconds, and the seed alone repeats it. */
const settings = { ...seed, endOnFailure: true };

test(
  `every permutation of ${permuted} deliveries leaves one mirror, the last state of the service`,
  async () => {
    await fc.assert(
      fc.asyncProperty(richHistories(permuted), fc.integer(), async (history, chance) => {
        const random = seededRandom(chance);
        await provesOneMirror(
          history,
          permutations([...Array(permuted).keys()]).map((order) => inBatches(random, order)),
        );
      }),
      { ...settings, numRuns: longer },
    );
  },
  180_000 * longer,
);

test(
  "every permutation of 4 deliveries leaves one mirror, for many histories",
  async () => {
    await fc.assert(
      fc.asyncProperty(histories(4), fc.integer(), async (history, chance) => {
        const random = seededRandom(chance);
        await provesOneMirror(
          history,
          permutations([0, 1, 2, 3]).map((order) => inBatches(random, order)),
        );
      }),
      { ...settings, numRuns: fewPermuted * longer },
    );
  },
  180_000 * longer,
);

test(
  `${shuffles * shuffledHistories} shuffles with duplicates leave one mirror each, the last state of the service`,
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 5, max: 8 }).chain(histories), fc.integer(), async (history, chance) => {
        const random = seededRandom(chance);
        await provesOneMirror(
          history,
          Array.from({ length: shuffles }, () => inBatches(random, shuffledWithRepeats(random, history))),
        );
      }),
      { ...settings, numRuns: shuffledHistories * longer },
    );
  },
  180_000 * longer,
);

test(
  "before a read settles anything, every permutation leaves the same rows, versions and all",
  async () => {
    await fc.assert(
      fc.asyncProperty(histories(4), fc.integer(), async (history, chance) => {
        const { db } = database;
        const random = seededRandom(chance);
        await emptyMirror(db);
        const left = new Set<string>();
        for (const order of permutations([0, 1, 2, 3])) {
          left.add(await mirrorAfter(db, history, inBatches(random, order)));
        }
        expect([...left]).toHaveLength(1);
      }),
      { ...settings, numRuns: 12 * longer },
    );
  },
  180_000 * longer,
);

test(
  "deliveries in one batch tell of each object what they tell one by one",
  async () => {
    await fc.assert(
      fc.asyncProperty(
        histories(8).filter(({ hasTies }) => !hasTies),
        fc.integer(),
        async (history, chance) => {
          const { db } = database;
          const inOrder = history.deliveries.map((_, n) => n);
          const inOneBatch = (order: readonly number[]): Arrival[] => order.map((delivery) => ({ delivery, batch: 0 }));
          const arrivals = [
            inOrder.map((delivery, batch) => ({ delivery, batch })),
            inOneBatch(inOrder),
            inOneBatch(shuffledWithRepeats(seededRandom(chance), history)),
          ];
          await emptyMirror(db);
          await settleCopies(db, history, await deliverCopies(db, history, arrivals));
          const [oneByOne, ...together] = await kindsOfCopies(db, arrivals.length);
          for (const told of together) expect(told).toEqual(oneByOne);
        },
      ),
      { ...settings, numRuns: (isTorture ? 500 : 30) * longer },
    );
  },
  180_000 * longer,
);

/** What the feed tells of each object in each copy, but for `updated`, which is told of several states together. */
async function kindsOfCopies(db: Knex, copies: number): Promise<string[][]> {
  const { rows } = await db.raw<{ rows: { id: string; kinds: string }[] }>(
    `select id, string_agg(kind || case when is_superseded then ' late' else '' end, ',' order by seq) as kinds
     from feed.changes where kind not like '%.updated' group by resource, id`,
  );
  return Array.from({ length: copies }, (_, copy) =>
    rows
      .flatMap(({ id, kinds }) => {
        const [base, of] = id.split("~");
        return of === String(copy) ? [`${base}: ${kinds}`] : [];
      })
      .sort(),
  );
}

const richHistories = (count: number) => histories(count).filter(({ isRich }) => isRich);

async function provesOneMirror(history: History, arrivals: readonly (readonly Arrival[])[]): Promise<void> {
  const { db } = database;
  await emptyMirror(db);
  const wanted = await deliverCopies(db, history, arrivals);
  // Which of two states of one time wins before a read depends on their content, here on the copy's ids.
  if (!history.hasTies) expectShared(await sharedRows(db), arrivals.length);
  if (!history.hasReads) {
    const asked = wanted.map((objects) => objects.map(({ resource, id }) => resource + id).sort());
    expect(new Set(asked.map(String)).size, "wanted reads do not depend on the order").toBe(1);
  }
  await settleCopies(db, history, wanted);
  const rows = await sharedRows(db);
  expectShared(rows, arrivals.length);
  expectLastState(rows, history.expected);
  expectToldOnce(rows, history.expected);
  await expectOpeningsTold(db);
  await expectLastChanges(db);
  await expectKinds(db, history);
}

/** Every row is there in every copy: no row is in some copies only, or differs in some. */
function expectShared(rows: readonly SharedRow[], copies: number): void {
  expect(rows.filter((row) => row.copies !== copies)).toEqual([]);
}

/** The feed has told each refund of every copy once, and of each dispute. */
function expectToldOnce(rows: readonly SharedRow[], { transactions, orders }: Expected): void {
  const facts = rows.flatMap(({ table, row }) => (table === "facts" ? [row] : []));
  const told = (kind: string, key: string): string[] =>
    facts.flatMap((row) => (row["kind"] === kind ? [String(row[key])] : [])).sort();
  const refunds = Object.entries(transactions).filter(
    ([, row]) => row["type"] === "refund" && row["status"] === "succeeded",
  );
  expect(told("order.refunded", "transaction_id")).toEqual(refunds.map(([id]) => id).sort());
  const disputed = Object.entries(orders).filter(([, row]) => String(row["status"]).startsWith("chargeback"));
  expect(told("order.disputed", "id")).toEqual(expect.arrayContaining(disputed.map(([id]) => id)));
}

/** A dispute is told as often as the states show that it was opened. */
async function expectOpeningsTold(db: Knex): Promise<void> {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `select o.id, opened.times, told.times as told from mirror.orders o
     cross join lateral (select count(*) as times from mirror.openings_of_order(o.id, null)) opened
     cross join lateral (
       select count(*) as times from feed.changes c where c.resource = 'order' and c.id = o.id and c.kind = 'order.disputed'
     ) told
     where opened.times <> told.times
     limit 5`,
  );
  expect(rows).toEqual([]);
}

/** The last change of each object that shows a state leads to the one that its row has. A refund read alone shows none. */
async function expectLastChanges(db: Knex): Promise<void> {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `select o.id, o.status, c.kind, c.to_status, c.state_hash from mirror.orders o left join lateral (
       select * from feed.changes c where c.resource = 'order' and c.id = o.id and not c.is_superseded
         and c.state_hash is not null
       order by seq desc limit 1) c on true
     where c.to_status is distinct from o.status or c.state_hash is distinct from o.content_hash
     limit 5`,
  );
  expect(rows).toEqual([]);
}

/** Only a status that some delivery showed is told, and last the one that the row has. */
async function expectKinds(db: Knex, { deliveries, expected }: History): Promise<void> {
  const last = Object.entries(expected.orders).map(([id, row]) => ({ ...row, id }));
  const all: Readonly<Record<string, unknown>>[] = [...last, ...deliveries.map(({ object }) => object)];
  const possible = new Set(all.map((order) => `${order["id"]} ${kindOfStatus(order["status"])}`));
  const { rows } = await db.raw<{ rows: { id: string; kind: string; status: string }[] }>(
    `select split_part(o.id, '~', 1) || :copyMark as id, o.status, c.kind
     from mirror.orders o join feed.changes c on c.resource = 'order' and c.id = o.id
     where c.kind in ('order.paid', 'order.failed', 'order.voided') and not exists (
       select from feed.changes later where later.resource = 'order' and later.id = o.id and later.seq > c.seq
         and later.kind in ('order.paid', 'order.failed', 'order.voided'))
     group by 1, 2, 3`,
    { copyMark },
  );
  for (const { id, kind, status } of rows) {
    expect(kind, `the last of ${id}`).toBe(kindOfStatus(status));
    expect(possible).toContain(`${id} ${kind}`);
  }
}

const kindOfStatus = (status: unknown): string =>
  status === "failed" || status === "voided" ? `order.${status}` : "order.paid";

function expectLastState(rows: readonly SharedRow[], expected: Expected): void {
  const of = (table: string, key = "id") =>
    Object.fromEntries(
      rows.flatMap(({ table: name, row }) => (name === table ? [[row[key], asText(row)]] : [])),
    ) as Record<string, Record<string, unknown>>;
  for (const table of ["orders", "transactions", "subscriptions", "customers"] as const) {
    const found = of(table);
    expect(Object.keys(found).sort()).toEqual(Object.keys(expected[table]).sort());
    for (const [id, columns] of Object.entries(expected[table])) {
      expect(found[id], `${table} ${id}`).toMatchObject(asText(columns));
    }
  }
  const chargebacks = of("chargebacks", "key");
  for (const [order, state] of Object.entries(expected.chargebacks)) {
    expect(chargebacks[order], `chargeback of ${order}`).toMatchObject({ state });
  }
}

/** JSON has money as a number and times in the server's form. */
const asText = (row: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(row).map(([key, value]) => {
      if (typeof value === "number") return [key, String(value)];
      const isTime = typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value);
      return [key, isTime ? new Date(value).toISOString() : value];
    }),
  );

function permutations(items: readonly number[]): number[][] {
  if (items.length <= 1) return [[...items]];
  return items.flatMap((first, n) => permutations(items.filter((_, m) => m !== n)).map((rest) => [first, ...rest]));
}

/** Every delivery at least once, some again, in any order. */
function shuffledWithRepeats(random: Random, { deliveries }: History): number[] {
  const order = deliveries.flatMap((_, n) => (random() < 0.3 ? [n, n] : [n]));
  for (let n = order.length - 1; n > 0; n--) {
    const other = Math.floor(random() * (n + 1));
    [order[n], order[other]] = [order[other]!, order[n]!];
  }
  return order;
}
