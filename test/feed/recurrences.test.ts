import fc from "fast-check";
import { beforeEach, expect, test } from "vitest";
import { readChanges, readableUntil } from "../../src/core/mirror/changes/read-changes.ts";
import type { Snapshot } from "../../src/core/mirror/snapshot.ts";
import { emptyMirror } from "../mirror/copies.ts";
import { apply, at, sampleOrder, shown } from "../mirror/samples.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { emptyTables } from "../support/empty-tables.ts";
import { rounds } from "../support/rounds.ts";

const database = useTestDatabase();
beforeEach(async () => {
  await emptyMirror(database.db);
});

const order = (seconds: number, status: string, fields: object = {}): Snapshot =>
  shown("order", sampleOrder({ status, updated_at: at(seconds), ...fields }));

/** The disputes that were told since, in their order. */
async function toldSince(after: number): Promise<string[]> {
  const { changes } = await readChanges(database.db, { after, limit: 1_000 });
  return changes.flatMap(({ kind, isSuperseded }) =>
    kind.startsWith("order.dispute") ? [`${kind}${isSuperseded ? " late" : ""}`] : [],
  );
}

const disputedAgain = [
  order(0, "succeeded"),
  order(10, "chargeback"),
  order(20, "chargeback_dismissed"),
  order(30, "chargeback"),
  order(40, "chargeback_accepted"),
];
const told = ["order.disputed", "order.dispute_won", "order.disputed", "order.dispute_lost"];

test("a dispute that is opened again is told again, and so is its end", async () => {
  const after = await readableUntil(database.db);
  for (const state of disputedAgain) await apply(database.db, state);
  expect(await toldSince(after)).toEqual(told);
  for (const state of disputedAgain) await apply(database.db, state);
  expect(await toldSince(after)).toEqual(told);
});

test("the states of a dispute that is opened again tell the same where they come together", async () => {
  const after = await readableUntil(database.db);
  await apply(database.db, ...disputedAgain);
  expect(await toldSince(after)).toEqual(told);
});

test("a state that comes late and divides a dispute tells its end, and the opening that is open now", async () => {
  const { db } = database;
  const [paid, opened, won, openedAgain] = disputedAgain as [Snapshot, Snapshot, Snapshot, Snapshot];
  for (const state of [paid, opened, openedAgain]) await apply(db, state);
  const after = await readableUntil(db);
  await apply(db, won);
  expect(await toldSince(after)).toEqual(["order.dispute_won late", "order.disputed"]);
});

test("an opening that a late state divides is told, although it has ended by then", async () => {
  const after = await readableUntil(database.db);
  await apply(database.db, order(10, "chargeback"));
  expect(await toldSince(after)).toEqual(["order.disputed"]);
  const divided = [
    order(0, "chargeback_dismissed"),
    order(20, "chargeback", { description: "another" }),
    order(30, "chargeback_accepted"),
  ];
  await apply(database.db, ...divided);
  expect((await toldSince(after)).map((each) => each.replace(" late", "")).toSorted()).toEqual([
    "order.dispute_lost",
    "order.dispute_won",
    "order.disputed",
    "order.disputed",
  ]);
});

test("a dispute that a release before told is not told again, and its second opening is", async () => {
  const { db } = database;
  const [paid, opened, won, openedAgain] = disputedAgain as [Snapshot, Snapshot, Snapshot, Snapshot];
  for (const state of [paid, opened, won]) await apply(db, state);
  expect(await db("feed.facts").orderBy("kind").select("kind", "subject")).toEqual([
    { kind: "order.dispute_won", subject: "" },
    { kind: "order.disputed", subject: "" },
  ]);
  const after = await readableUntil(db);
  await apply(db, order(25, "chargeback_dismissed", { description: "another" }), openedAgain);
  expect(await toldSince(after)).toEqual(["order.disputed"]);
});

test("what the mirror had before there was a feed is not told, and what follows is", async () => {
  const { db } = database;
  const [paid, opened, won, openedAgain, lost] = disputedAgain as [Snapshot, Snapshot, Snapshot, Snapshot, Snapshot];
  for (const state of [paid, opened, won, openedAgain]) await apply(db, state);
  await emptyTables(db, ["feed.changes", "feed.facts"]);
  const after = await readableUntil(db);
  await apply(db, lost);
  expect(await toldSince(after)).toEqual(["order.dispute_lost"]);
  await apply(db, order(50, "chargeback_accepted", { description: "another" }));
  expect(await toldSince(after)).toEqual(["order.dispute_lost"]);
});

const runs = rounds(4, 60, 200);

test("any order of arrival, in any batches and with repeats, tells each opening and each end once", async () => {
  const { db } = database;
  const statuses = ["succeeded", "chargeback", "chargeback_dismissed", "chargeback_accepted"];
  const life = fc.array(fc.constantFrom(...statuses), { minLength: 2, maxLength: 7 });
  await fc.assert(
    fc.asyncProperty(
      life.chain((lived) =>
        fc.record({
          lived: fc.constant(lived),
          arrivals: fc.shuffledSubarray(
            [...lived.keys(), ...lived.keys()].map((n, place) => ({ n, place })),
            { minLength: lived.length },
          ),
          cuts: fc.array(fc.boolean(), { minLength: 14, maxLength: 14 }),
        }),
      ),
      async ({ lived, arrivals, cuts }) => {
        const states = lived.map((status, n) => order(n * 10, status, { description: `${n}` }));
        const all = [...arrivals, ...lived.map((_, n) => ({ n }))];
        const tell = async (batches: readonly (readonly Snapshot[])[]): Promise<string[]> => {
          await emptyMirror(db);
          const after = await readableUntil(db);
          for (const batch of batches) await apply(db, ...batch);
          return (await toldSince(after)).map((each) => each.replace(" late", "")).sort();
        };
        const inOrder = await tell(states.map((state) => [state]));
        const batches: Snapshot[][] = [[]];
        for (const [place, { n }] of all.entries()) {
          if (cuts[place % cuts.length] === true) batches.push([]);
          batches.at(-1)?.push(states[n]!);
        }
        expect(await tell(batches.filter((batch) => batch.length > 0))).toEqual(inOrder);
      },
    ),
    { numRuns: runs },
  );
});
