import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bulkLoad } from "../../bench/support/bulk-load.ts";
import { fillYearOfOrders } from "../../bench/support/fill-year.ts";
import { grownEvent } from "../../bench/support/grown-events.ts";
import { fillGrownInbox } from "../../bench/support/grown-inbox.ts";
import { type Cost, type GrowthRound, costsOf, medianRatio } from "../../bench/support/growth.ts";
import { yearId, yearOrder } from "../../bench/support/year.ts";
import { compareStates } from "../../src/core/mirror/compare/compare-states.ts";
import { decode } from "../../src/core/mirror/resources.ts";
import { useTestDatabase } from "../support/use-database.ts";

const database = useTestDatabase();
let client: pg.Client;
beforeAll(async () => {
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
});
afterAll(() => client.end());

const orders = 400;

describe("a grown database", () => {
  test("its mirror equals what the generated service shows, order by order", async () => {
    await fillYearOfOrders(client, orders);
    const states = Array.from({ length: orders }, (_, n) => n + 1).flatMap((n) => {
      const object = JSON.parse(yearOrder(orders, n)) as Record<string, unknown>;
      const observedAt = "2025-01-01T00:00:00.000000Z";
      const decoded = decode({
        resource: "order",
        object,
        fallbackUpdatedAt: null,
        observedAt,
        cause: "read",
      });
      return decoded.ok ? decoded.states : [];
    });
    expect(states).toHaveLength(2 * orders);
    expect(await compareStates(database.db, states)).toEqual([]);
  });

  test("its inbox holds events that were applied, and a worker finds nothing to do", async () => {
    await fillGrownInbox(client, { events: 100, orders });
    const { rows } = await client.query(
      "select state, count(*)::int as n, count(distinct event_id)::int as ids from inbox.events group by state",
    );
    expect(rows).toEqual([{ state: "applied", n: 100, ids: 100 }]);
  });
});

describe("a bulk load", () => {
  test("leaves each index valid, used by new rows, and with no setting of its own", async () => {
    await client.query("create table loaded (id text primary key, n bigint unique)");
    await client.query("insert into loaded values ('before', 0)");
    await bulkLoad(client, ["loaded"], async () => {
      await client.query("insert into loaded select md5(n::text), n from generate_series(1, 50) n");
    });
    const { rows } = await client.query(
      `select count(*)::int as indexes, bool_and(indisvalid and indisready and reloptions is null) as whole
       from pg_index join pg_class on oid = indexrelid where indrelid = 'loaded'::regclass`,
    );
    expect(rows).toEqual([{ indexes: 2, whole: true }]);
    await expect(client.query("insert into loaded values (md5('7'), 100)")).rejects.toMatchObject({
      code: "23505",
    });
    await expect(client.query("insert into loaded values ('new', 50)")).rejects.toMatchObject({
      code: "23505",
    });
  });

  test("fails where the rows break a unique index, and leaves the table as it was", async () => {
    await client.query("create table refused (id text primary key)");
    await client.query("insert into refused values ('before')");
    const load = bulkLoad(client, ["refused"], async () => {
      await client.query("insert into refused values ('twice'), ('twice')");
    });
    await expect(load).rejects.toMatchObject({ code: "23505" });
    expect((await client.query("select id from refused")).rows).toEqual([{ id: "before" }]);
  });
});

describe("the events of the rounds", () => {
  const events = Array.from({ length: 800 }, (_, n) => {
    const { id, body } = grownEvent("test", n, orders);
    const { data } = JSON.parse(body.toString()) as { data: { object: Record<string, unknown> } };
    return { id, object: data.object, body: body.toString() };
  });
  const ofYear = new Map(Array.from({ length: orders }, (_, n) => [yearId("order", n + 1), yearOrder(orders, n + 1)]));
  const old = events.flatMap(({ object }) => {
    const before = ofYear.get(String(object["id"]));
    return before === undefined ? [] : [{ object, before: JSON.parse(before) as typeof object }];
  });

  test("three of eight are about orders of the year, spread over all of it", () => {
    expect(old).toHaveLength(300);
    expect(new Set(old.map(({ object }) => object["id"])).size).toBeGreaterThan(150);
  });

  test("such an order is paid or refunded, and keeps what an order never changes", () => {
    const changing = { status: null, updated_at: null, transactions: null };
    for (const { object, before } of old) {
      expect(before["status"]).toBe("succeeded");
      expect(["succeeded", "refunded"]).toContain(object["status"]);
      expect({ ...object, ...changing }).toEqual({ ...before, ...changing });
    }
  });

  test("no two are equal, and the same number gives the same event", () => {
    expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
    expect(grownEvent("test", 5, orders).body.toString()).toBe(events[5]?.body);
  });
});

describe("the costs of the rounds", () => {
  const cost = (postgres: number, worker: number, walBytes: number): Cost => ({
    cpuMicros: { postgres, worker },
    walBytes,
  });
  const round = (empty: Cost, grown: Cost): GrowthRound => ({
    phase: "apply",
    moment: "steady",
    empty,
    grown,
  });
  const rounds = [
    round(cost(100, 100, 1_000), cost(200, 100, 3_000)),
    // A minute in which all was twice as dear: its ratio is that of the others.
    round(cost(200, 200, 1_000), cost(400, 200, 2_000)),
    round(cost(100, 100, 1_000), cost(900, 100, 9_000)),
    { ...round(cost(1, 1, 1), cost(9, 9, 9)), phase: "store" as const },
  ];

  test("the ratio is the median of the rounds' ratios, over all programs", () => {
    expect(medianRatio(rounds, "apply", "steady")).toEqual({ cost: 1.5, wal: 3 });
    expect(medianRatio(rounds, "store", "steady")).toEqual({ cost: 9, wal: 9 });
  });

  test("the costs are medians, program by program", () => {
    expect(costsOf(rounds, "apply", "steady")).toEqual({
      empty: cost(100, 100, 1_000),
      grown: cost(400, 100, 3_000),
    });
  });
});
