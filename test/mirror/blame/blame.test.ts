import fc from "fast-check";
import type { Knex } from "knex";
import { afterAll, beforeAll, expect, test } from "vitest";
import { canonicalTimestamp } from "../../../src/core/contract/timestamp.ts";
import { blameOf } from "../../../src/core/mirror/blame/blame.ts";
import { readComputedColumns } from "../../../src/core/mirror/blame/computed-columns.ts";
import { fieldsOf } from "../../../src/core/mirror/blame/fields.ts";
import { type KnownObject, readObject } from "../../../src/core/mirror/blame/object-history.ts";
import { editedColumns, winnersAsOf, winnersNow } from "../../../src/core/mirror/blame/winners.ts";
import { mirrorResources, resourceNamed } from "../../../src/core/mirror/resources.ts";
import { namedGroups } from "../../../src/core/mirror/resources/resource.ts";
import { type Random, seededRandom } from "../../../src/platform/random.ts";
import { type TestDatabase, createTestDatabase } from "../../support/database.ts";
import { type Arrival, deliverCopies, emptyMirror, inBatches, settleCopies, withoutLog } from "../copies.ts";
import { type History, histories } from "../shop-history.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await withoutLog(database.db);
});
afterAll(() => database.destroy());

const given = process.env["TALLYHOOK_TEST_SEED"];
const longer = Number(process.env["TALLYHOOK_TEST_RUNS"] ?? 1);
const settings = {
  ...(given === undefined ? {} : { seed: Number(given) }),
  numRuns: 6 * longer,
  endOnFailure: true,
};

test(
  "for random deliveries the blame's winners are what the rows show, before and after a read settles ties",
  async () => {
    await fc.assert(
      fc.asyncProperty(histories(8), fc.integer(), async (history, chance) => {
        const { db } = database;
        await emptyMirror(db);
        const random = seededRandom(chance);
        const arrivals = [inBatches(random, shuffled(random, history))];
        const wanted = await deliverCopies(db, history, arrivals);
        for (const object of await everyObject(db)) await provesBlame(db, object);
        await settleCopies(db, history, wanted);
        for (const object of await everyObject(db)) await provesBlame(db, object);
      }),
      settings,
    );
  },
  120_000 * longer,
);

test(
  "without ties, the object as of the end of each batch is as its row was then",
  async () => {
    await fc.assert(
      fc.asyncProperty(
        histories(6).filter(({ hasTies, hasReads }) => !hasTies && !hasReads),
        fc.integer(),
        async (history, chance) => {
          const { db } = database;
          await emptyMirror(db);
          const random = seededRandom(chance);
          const moments: { at: string; contents: ReadonlyMap<string, unknown> }[] = [];
          for (const batch of batchesOf(inBatches(random, shuffled(random, history)))) {
            await deliverCopies(db, history, [batch]);
            const contents = await contentsNow(db);
            moments.push({ at: await databaseTime(db), contents });
          }
          const objects = await everyObject(db);
          for (const { at, contents } of moments) {
            const past = new Map(
              objects.flatMap((object) =>
                Array.from(winnersAsOf(object, at), ([group, { state }]) => [`${group} ${object.id}`, state.content]),
              ),
            );
            for (const [key, content] of contents) {
              // An order that shows an entry once more with a later time of its own leaves no trace of it.
              if (!key.startsWith("transaction.inline ")) {
                expect(past.get(key), key).toEqual(content);
              }
            }
            expect(past.size, at).toBeGreaterThanOrEqual(contents.size);
          }
        },
      ),
      settings,
    );
  },
  120_000 * longer,
);

async function provesBlame(db: Knex, object: KnownObject): Promise<void> {
  const { resource, id, row, states } = object;
  const winners = winnersNow(object);
  const described = resourceNamed(resource);
  for (const { group, versionColumn, contentColumn, inHistory } of namedGroups(described)) {
    if (!inHistory || row?.[versionColumn] === "") continue;
    const winner = winners.get(group);
    expect(winner, `${group} of ${id} has a winner`).toBeDefined();
    if (contentColumn !== undefined) expect(winner?.state.content).toEqual(row?.[contentColumn]);
    const higher = states.filter((state) => state.group === group && state.version > (winner?.version ?? ""));
    expect(higher, `nothing in the history of ${group} ${id} is above its row`).toEqual([]);
  }
  expect(editedColumns(object, winners), `${resource} ${id}`).toEqual([]);
  const computed = await readComputedColumns(db, resource, winners);
  for (const [column, { value }] of computed) {
    expect(value, `${column} of ${id}`).toEqual(row?.[column] ?? null);
  }
  const blame = new Map(blameOf(object, winners, computed).map((field) => [field.field, field] as const));
  for (const column of ["status", "total", "attempt_count", "next_retry_at", "email", "amount"]) {
    const shown = row?.[column];
    if (shown === undefined || shown === null || blame.get(column) === undefined) continue;
    expect(comparable(blame.get(column)?.value), `${column} of ${id}`).toEqual(comparable(shown));
  }
  for (const { field, value, since, winner, rivals } of blame.values()) {
    expect(since.version <= winner.version, `${field} is not since a later state`).toBe(true);
    expect(rivals.map((rival) => rival.value)).not.toContainEqual(value);
    expect(rivals.filter(({ loss }) => loss.why === "unexplained")).toEqual([]);
  }
  if (resource === "transaction") {
    const owner = blame.get("status")?.group ?? "";
    const shown = fieldsOf(winners.get(owner)?.state.content ?? {});
    expect(shown.get("status")).toBe(row?.["status"]);
  }
}

const comparable = (value: unknown): unknown =>
  typeof value === "string" ? (canonicalTimestamp(value) ?? value) : value;

async function everyObject(db: Knex): Promise<KnownObject[]> {
  const found: KnownObject[] = [];
  for (const { name, table } of mirrorResources) {
    for (const { id } of await db(`mirror.${table}`).select<{ id: string }[]>("id").orderBy("id")) {
      const object = await readObject(db, { resource: name, id });
      if (object !== null) found.push(object);
    }
  }
  return found;
}

async function contentsNow(db: Knex): Promise<ReadonlyMap<string, unknown>> {
  const contents = new Map<string, unknown>();
  for (const resource of mirrorResources) {
    const rows = await db(`mirror.${resource.table}`).select<Record<string, unknown>[]>("*");
    for (const { group, contentColumn, inHistory } of namedGroups(resource)) {
      for (const row of rows) {
        const content = contentColumn === undefined ? null : row[contentColumn];
        if (inHistory && content !== null) contents.set(`${group} ${String(row["id"])}`, content);
      }
    }
  }
  return contents;
}

async function databaseTime(db: Knex): Promise<string> {
  const { rows } = await db.raw<{ rows: [{ at: string }] }>(
    `select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at`,
  );
  return rows[0].at;
}

function batchesOf(arrivals: readonly Arrival[]): Arrival[][] {
  const batches: Arrival[][] = [];
  for (const { delivery, batch } of arrivals) {
    (batches[batch] ??= []).push({ delivery, batch: 0 });
  }
  return batches;
}

function shuffled(random: Random, { deliveries }: History): number[] {
  const order = deliveries.flatMap((_, n) => (random() < 0.3 ? [n, n] : [n]));
  for (let n = order.length - 1; n > 0; n--) {
    const other = Math.floor(random() * (n + 1));
    [order[n], order[other]] = [order[other]!, order[n]!];
  }
  return order;
}
