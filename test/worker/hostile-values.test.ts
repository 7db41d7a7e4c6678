import type { Knex } from "knex";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { mirrorResources } from "../../src/core/mirror/resources.ts";
import { applyBatch } from "../../src/core/worker/apply-batch.ts";
import { sampleCustomer, sampleEntry, sampleOrder, sampleSubscription, sampleTransaction } from "../mirror/samples.ts";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import { applyDeps, emptyAll, storeBody } from "./worker-stand.ts";

let database: TestDatabase;
let db: Knex;
beforeAll(async () => {
  database = await createTestDatabase();
  ({ db } = database);
});
afterAll(() => database.destroy());
beforeEach(() => emptyAll(db));

/** No repeat of a letter: what compresses well would fit into an index. */
const long = Array.from({ length: 9_000 }, (_, n) => String.fromCodePoint(0x4e00 + ((n * 7_919) % 20_000))).join("");

/** As JSON, since JavaScript could not write some of them. */
const hostile: Readonly<Record<string, string>> = {
  "9,000 characters": JSON.stringify(long),
  NUL: '"a\\u0000b"',
  "a lone surrogate": '"\\ud800"',
  "half a pair at the cut": JSON.stringify(`${"x".repeat(499)}😀😀`),
  "a huge number": "1e400",
  "more than a bigint": "92233720368547758079",
  "a negative number": "-9007199254740993",
  "a fraction": "0.1",
  "a time before Christ": '"-0044-03-15T00:00:00Z"',
  "the year 1": '"0001-01-01T00:00:00Z"',
  "a far time": '"9999-12-31T23:59:59.999999Z"',
  "a time that no calendar has": '"+275760-09-13T00:00:00Z"',
  infinity: '"infinity"',
  "an empty text": '""',
  null: "null",
  "an array": "[[[]]]",
  "an object": '{"__proto__":{"id":1},"constructor":null}',
};

const nested = {
  payment_method: {
    id: "pm-1",
    type: "card",
    card: { brand: "visa", last_four: "4242", exp: "12/30" },
  },
  applied_coupon: { id: "coupon-1", code: "TEN" },
  shipping_address: { full_name: "Jane Doe", country: "US" },
  metadata: { key: "value" },
};

const samples: Readonly<Record<string, { type: string; object: object }>> = {
  order: {
    type: "order.failed",
    object: sampleOrder({
      ...nested,
      status: "failed",
      failure_code: "stolen_card",
      attempt_count: 1,
      next_retry_at: "2025-03-02T12:00:00Z",
      transactions: [sampleEntry()],
      items: [{ id: "item-1", name: "One", quantity: 1, price: 1_000, total: 1_000 }],
    }),
  },
  transaction: { type: "transaction.updated", object: sampleTransaction({ ...nested }) },
  subscription: { type: "subscription.updated", object: sampleSubscription({ ...nested }) },
  customer: { type: "customer.updated", object: sampleCustomer({ ...nested, phone: "+1" }) },
};

type Path = readonly (string | number)[];

/** The places of an object and of what is in it, and the fields that the interface names besides. */
function placesOf(value: unknown, named: Iterable<string> = [], at: Path = []): Path[] {
  if (typeof value !== "object" || value === null) return [];
  const keys = new Set<string | number>([...Object.keys(value), ...named]);
  return [...keys].flatMap((key) => {
    const here = [...at, Array.isArray(value) ? Number(key) : key];
    return [here, ...placesOf((value as Record<string, unknown>)[key], [], here)];
  });
}

const marker = "@@hostile@@";

function withMarker(object: object, path: Path): object {
  const copy = structuredClone(object) as Record<string | number, unknown>;
  let place = copy;
  for (const key of path.slice(0, -1)) place = place[key] as Record<string | number, unknown>;
  place[path.at(-1)!] = marker;
  return copy;
}

const bodyOf = (type: string, object: object, json: string): string =>
  JSON.stringify({
    id: crypto.randomUUID(),
    type,
    created_at: "2025-03-01T12:00:00.000Z",
    data: { object },
  }).replace(`"${marker}"`, () => json);

test.each(Object.keys(samples))(
  "whatever stands in a field of a %s, its event is over at its first attempt, and its neighbours are applied",
  async (name) => {
    const { type, object } = samples[name]!;
    const { known } = mirrorResources.find((resource) => resource.name === name)!;
    const told = new Map<number, string>();
    const neighbours: number[] = [];
    const places = placesOf(object, known.fields);
    for (const [n, path] of places.entries()) {
      const own = { ...object, id: `${name}-${n}` };
      const stored = Object.entries(hostile).map(async ([what, json], m) => {
        const body = bodyOf(type, withMarker({ ...own, id: `${own.id}-${m}` }, path), json);
        told.set(await storeBody(db, body), `${path.join(".")}: ${what}`);
      });
      const neighbour = bodyOf("order.created", sampleOrder({ id: `neighbour-${n}` }), "");
      neighbours.push(await storeBody(db, neighbour));
      await Promise.all(stored);
    }
    const seqs = [...told.keys(), ...neighbours].toSorted((a, b) => a - b);
    for (let n = 0; n < seqs.length; n += 500) {
      await applyBatch(applyDeps(db), seqs.slice(n, n + 500));
    }
    const rows = await db("inbox.progress").select<
      { seq: string; state: string; attempts: number; reason: string | null }[]
    >("seq", "state", "attempts", "reason");
    const left = rows.filter(
      ({ state, attempts }) => !["applied", "stale", "ignored", "dead"].includes(state) || attempts !== 1,
    );
    expect(left.map(({ seq, ...row }) => ({ ...row, at: told.get(Number(seq)) }))).toEqual([]);
    const applied = rows.filter(({ state }) => state === "applied").map(({ seq }) => Number(seq));
    expect(neighbours.filter((seq) => !applied.includes(seq))).toEqual([]);
    expect([told.size, applied.length > told.size / 2]).toEqual([places.length * Object.keys(hostile).length, true]);
    // What the database itself refused was not foreseen where it came in.
    const refused = rows.filter(({ reason }) => reason?.startsWith("attempt"));
    expect(refused.map(({ seq, reason }) => ({ reason, at: told.get(Number(seq)) }))).toEqual([]);
  },
);
