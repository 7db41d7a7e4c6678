import type { IncomingMessage, ServerResponse } from "node:http";
import type { Knex } from "knex";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type RefetchRequest, requestRefetches } from "../../src/core/inbox/refetch.ts";
import { refetchDueObjects } from "../../src/core/worker/refetch.ts";
import { walkDisputes } from "../../src/core/worker/walk-disputes.ts";
import { applyBatch } from "../../src/core/worker/apply-batch.ts";
import {
  apply,
  at,
  rowOf,
  sampleCustomer,
  sampleEntry,
  sampleOrder,
  sampleTransaction,
  shown,
} from "../mirror/samples.ts";
import { type ServiceStand, sendJson, serviceError, standUp } from "../client/service-stand.ts";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import { applyDeps, emptyAll, poisonOrder, refuseOrder, storeEvent } from "./worker-stand.ts";
import { accountProblem } from "../../src/app/same-account.ts";

/** What the service answers now, by path. */
type Answer = (response: ServerResponse, request: IncomingMessage) => void;

let database: TestDatabase;
let db: Knex;
let service: ServiceStand;
let answers: Record<string, Answer>;
/** The service's clock. */
let date: string;
let asked: string[];

beforeAll(async () => {
  database = await createTestDatabase();
  ({ db } = database);
  service = await standUp(
    (request, response) => {
      response.sendDate = false;
      response.setHeader("date", new Date(date).toUTCString());
      const { pathname } = new URL(request.url ?? "", "http://service");
      asked.push(request.url ?? "");
      const answer = answers[pathname] ?? missing;
      answer(response, request);
    },
    { retry: { maxAttempts: 2, baseDelayMs: 1, maxDelayMs: 1 } },
  );
});
afterAll(async () => {
  await service.close();
  await database.destroy();
});
beforeEach(async () => {
  answers = {};
  asked = [];
  date = at(60);
  await emptyAll(db);
});

const shows =
  (object: unknown): Answer =>
  (response) =>
    sendJson(response, 200, object);
const missing: Answer = (response) => sendJson(response, 404, serviceError("resource_not_found"));
const broken: Answer = (response) => sendJson(response, 503, serviceError("service_unavailable"));

const graceMs = 600_000;
const deps = () => ({
  ...applyDeps(db),
  client: service.client,
  missingGraceMs: graceMs,
  foreignAccount: () => accountProblem({ db, client: service.client }),
});
const fetchDue = () => refetchDueObjects(deps());
const want = (fetch: Partial<RefetchRequest> = {}) =>
  requestRefetches(db, [{ resource: "order", id: "order-1", reason: "thin", notBefore: null, ...fetch }]);
const disputes = { resource: "disputed-transactions", id: "*", reason: "dispute" } as const;
const walk = (stop = new AbortController().signal) => walkDisputes(deps(), stop);
const waiting = () => db("inbox.fetches").orderBy(["resource", "id"]);
const makeDue = () => db("inbox.fetches").update({ due_at: db.raw("now() - interval '1 second'") });

describe("a wanted read", () => {
  test("brings the object, with its entries, dated by the service, and is over", async () => {
    answers["/v1/orders/order-1"] = shows(sampleOrder({ transactions: [sampleEntry()] }));
    await want();
    expect(await fetchDue()).toBe(1);
    expect(await rowOf(db, "orders", "order-1")).toMatchObject({
      status: "succeeded",
      version: expect.stringContaining("|2025-03-01T12:01:00.000000Z|") as unknown,
      last_cause: "fetch",
    });
    expect(await rowOf(db, "transactions", "sale-1")).toMatchObject({ status: "succeeded" });
    expect(await waiting()).toEqual([]);
    expect(asked).toEqual(["/v1/orders/order-1?expand=transactions"]);
    expect(await fetchDue()).toBe(0);
  });

  test("of a thin event settles it, end to end", async () => {
    const seq = await storeEvent(db, "subscription.updated", { id: "subscription-1" });
    await applyBatch(deps(), [seq]);
    answers["/v1/subscriptions/subscription-1"] = shows({
      id: "subscription-1",
      customer_id: "customer-1",
      plan: null,
      status: "past_due",
      failure_reason: "declined",
      attempt_count: 1,
      created_at: at(0),
      updated_at: at(1),
    });
    await fetchDue();
    expect(await rowOf(db, "subscriptions", "subscription-1")).toMatchObject({
      status: "past_due",
      failure_reason: "declined",
    });
  });

  test("of a tie counts only from an answer two seconds past it", async () => {
    const [one, two] = ["one", "two"].map((description) => shown("order", sampleOrder({ description })));
    await apply(db, one!, two!);
    await want({ reason: "tie", notBefore: at(2) });
    answers["/v1/orders/order-1"] = shows(sampleOrder({ description: "one" }));
    date = at(1);
    const startedMs = Date.now();
    await fetchDue();
    const [early] = await waiting();
    expect(early).toMatchObject({ last_error: expect.stringContaining("too early") as unknown });
    expect(early.due_at.getTime() - startedMs).toBeGreaterThan(900);
    expect(early.due_at.getTime() - Date.now()).toBeLessThan(2_000);
    date = at(2);
    await makeDue();
    await fetchDue();
    expect(await waiting()).toEqual([]);
    expect(await rowOf(db, "orders", "order-1")).toMatchObject({ description: "one" });
  });

  test("that shows a new tie by itself is made again, later", async () => {
    await apply(db, shown("order", sampleOrder({ description: "event" })));
    await want();
    answers["/v1/orders/order-1"] = shows(sampleOrder({ description: "read" }));
    date = at(0);
    await fetchDue();
    expect(await waiting()).toMatchObject([{ reason: "tie", not_before: new Date(at(2)) }]);
    date = at(9);
    await makeDue();
    await fetchDue();
    expect(await waiting()).toEqual([]);
  });

  test("of a tie that lies years ahead is made less and less often", async () => {
    const updatedAt = "2099-01-01T00:00:00.000Z";
    await want({ reason: "tie", notBefore: "2099-01-01T00:00:02.000000Z" });
    answers["/v1/orders/order-1"] = shows(sampleOrder({ updated_at: updatedAt }));
    for (let attempt = 1; attempt < 10; attempt++) {
      await fetchDue();
      await makeDue();
    }
    await fetchDue();
    const [row] = await waiting();
    expect(row.due_at.getTime() - Date.now()).toBeGreaterThan(120_000);
  });

  test("of what is no id for a path is given up, and nothing is asked", async () => {
    await want({ id: ".." });
    for (let attempt = 1; attempt <= 6; attempt++) {
      const [row] = await waiting();
      if (attempt > 1) expect(row.last_error).toBe("the id cannot be used in a request");
      await fetchDue();
      await makeDue();
    }
    expect(await waiting()).toEqual([]);
    expect(asked).toEqual([]);
  });

  test("that was ordered again while it was under way is made again", async () => {
    answers["/v1/orders/order-1"] = (response) => {
      void want().then(() => sendJson(response, 200, sampleOrder()));
    };
    await want();
    await fetchDue();
    expect(await waiting()).toMatchObject([{ resource: "order", id: "order-1", generation: 2 }]);
    answers["/v1/orders/order-1"] = shows(sampleOrder({ status: "refunded", updated_at: at(5) }));
    expect(await fetchDue(), "due at once").toBe(1);
    expect(await rowOf(db, "orders", "order-1")).toMatchObject({ status: "refunded" });
    expect(await waiting()).toEqual([]);
  });

  test("is hidden from other workers while it is under way, and comes back when its worker dies", async () => {
    await want();
    let other = -1;
    answers["/v1/orders/order-1"] = (response) => {
      void fetchDue().then((count) => {
        other = count;
        sendJson(response, 200, sampleOrder());
      });
    };
    await fetchDue();
    expect(other).toBe(0);
  });

  test("of an entry without its state reads the transaction", async () => {
    answers["/v1/orders/order-1"] = shows(sampleOrder({ transactions: [{ id: "sale-1" }] }));
    answers["/v1/transactions/sale-1"] = shows(sampleTransaction({ description: "whole" }));
    await want();
    await fetchDue();
    await fetchDue();
    expect(await rowOf(db, "transactions", "sale-1")).toMatchObject({
      data: { description: "whole" },
    });
    expect(await waiting()).toEqual([]);
  });
});

describe("a service that does not answer well", () => {
  test("5xx: put off, longer each time, and never given up", async () => {
    answers["/v1/orders/order-1"] = broken;
    await want();
    const pauses: number[] = [];
    for (let attempt = 1; attempt <= 12; attempt++) {
      await fetchDue();
      const [row] = await waiting();
      expect(row).toMatchObject({ attempts: attempt, last_error: "ServiceUnavailableError" });
      pauses.push(row.due_at.getTime() - Date.now());
      await makeDue();
    }
    expect(pauses[0]).toBeLessThan(1_500);
    expect(pauses[4]).toBeGreaterThan(5_000);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(600_000);
    answers["/v1/orders/order-1"] = shows(sampleOrder());
    await fetchDue();
    expect(await waiting()).toEqual([]);
  });

  test("a wish to be left alone is kept", async () => {
    answers["/v1/orders/order-1"] = (response) =>
      sendJson(response, 429, serviceError("rate_limit_exceeded"), { "retry-after": "300" });
    await want();
    await fetchDue();
    const [row] = await waiting();
    expect(row.due_at.getTime() - Date.now()).toBeGreaterThan(290_000);
    service.time.advance(301_000);
  });

  test.each([
    ["another object", sampleOrder({ id: "order-2" })],
    ["an object without its required fields", { id: "order-1" }],
    ["money that cannot be read", sampleOrder({ total: "12.50" })],
    ["no object", ["order-1"]],
  ])("%s: asked again, and given up after six times, with nothing stored", async (_name, body) => {
    answers["/v1/orders/order-1"] = shows(body);
    await want();
    for (let attempt = 1; attempt <= 5; attempt++) {
      await fetchDue();
      expect(await waiting()).toHaveLength(1);
      await makeDue();
    }
    await fetchDue();
    expect(await waiting()).toEqual([]);
    expect(await db("mirror.orders")).toEqual([]);
  });

  test.each([
    ["failed calls", broken, {}],
    ["early answers", shows(sampleOrder()), { reason: "tie", notBefore: at(3_600) }],
  ] as const)("%s do not count as useless answers", async (_name, answer, request) => {
    answers["/v1/orders/order-1"] = answer;
    await want(request);
    for (let attempt = 1; attempt <= 8; attempt++) {
      await fetchDue();
      await makeDue();
    }
    answers = {};
    for (let attempt = 1; attempt <= 5; attempt++) {
      await fetchDue();
      expect(await waiting(), `answer ${attempt}`).toHaveLength(1);
      await makeDue();
    }
    await fetchDue();
    expect(await waiting(), "given up after six").toEqual([]);
  });

  test("a failing read holds up no other", async () => {
    answers["/v1/orders/order-1"] = broken;
    answers["/v1/customers/customer-1"] = shows(sampleCustomer());
    await want();
    await want({ resource: "customer", id: "customer-1" });
    await fetchDue();
    expect(await rowOf(db, "customers", "customer-1")).toMatchObject({ first_name: "Jane" });
    expect(await waiting()).toMatchObject([{ id: "order-1" }]);
  });
});

test("an answer that the database can never store is asked for some times, then given up", async () => {
  const heal = await refuseOrder(db, "order-1", "54000");
  answers["/v1/orders/order-1"] = shows(sampleOrder());
  try {
    await want();
    for (let attempt = 1; attempt <= 5; attempt++) {
      await fetchDue();
      expect(await waiting()).toHaveLength(1);
      await makeDue();
    }
    await fetchDue();
    expect(await waiting()).toEqual([]);
  } finally {
    await heal();
  }
});

describe("an object that the service does not know", () => {
  test("an order is asked for some times, then given up", async () => {
    await want();
    for (let attempt = 1; attempt <= 5; attempt++) {
      await fetchDue();
      expect(await waiting()).toHaveLength(1);
      await makeDue();
    }
    await fetchDue();
    expect(await waiting()).toEqual([]);
  });

  test("an order that the service shows a moment later is not lost", async () => {
    await want();
    await fetchDue();
    answers["/v1/orders/order-1"] = shows(sampleOrder());
    await makeDue();
    await fetchDue();
    expect(await rowOf(db, "orders", "order-1")).toMatchObject({ status: "succeeded" });
  });

  test("a customer is gone after two answers a grace apart, by the service's clock", async () => {
    await apply(db, shown("customer", sampleCustomer()));
    await want({ resource: "customer", id: "customer-1" });
    await fetchDue();
    const [row] = await waiting();
    expect(row).toMatchObject({ missing_since: new Date(at(60)) });
    expect(row.due_at.getTime() - Date.now()).toBeGreaterThan(graceMs - 60_000);
    date = at(600);
    await makeDue();
    await fetchDue();
    expect(await rowOf(db, "customers", "customer-1"), "too early").toMatchObject({
      deleted_at: null,
    });
    date = at(660);
    await makeDue();
    await fetchDue();
    expect(await rowOf(db, "customers", "customer-1")).toMatchObject({
      first_name: "Jane",
      deleted_at: new Date(at(660)),
    });
    expect(await waiting()).toEqual([]);
  });

  test("a clock of the service that was set back by a year makes no wait of a year", async () => {
    await want({ resource: "customer", id: "customer-1" });
    await fetchDue();
    date = new Date(Date.parse(at(60)) - 365 * 86_400_000).toISOString();
    await makeDue();
    await fetchDue();
    const [row] = await waiting();
    expect(row.due_at.getTime() - Date.now()).toBeLessThanOrEqual(graceMs);
  });

  test("a customer whom another account's key does not know is not gone", async () => {
    await apply(db, shown("customer", sampleCustomer()), shown("order", sampleOrder()));
    await want({ resource: "customer", id: "customer-1" });
    await fetchDue();
    date = at(660);
    await makeDue();
    await fetchDue();
    expect(await rowOf(db, "customers", "customer-1")).toMatchObject({ deleted_at: null });
    expect(await waiting()).toMatchObject([
      { last_error: expect.stringContaining("The service shows another account") as string },
    ]);
  });

  test("a customer that was asked for again while it was found is missed from the start again", async () => {
    await want({ resource: "customer", id: "customer-1" });
    await fetchDue();
    answers["/v1/customers/customer-1"] = (response) => {
      void want({ resource: "customer", id: "customer-1" }).then(() => sendJson(response, 200, sampleCustomer()));
    };
    await makeDue();
    await fetchDue();
    answers = {};
    date = at(2_000);
    await fetchDue();
    expect(await waiting()).toMatchObject([{ missing_since: new Date(at(2_000)) }]);
    expect(await rowOf(db, "customers", "customer-1")).toMatchObject({ deleted_at: null });
  });

  test("a customer that is found in between is not gone", async () => {
    await want({ resource: "customer", id: "customer-1" });
    await fetchDue();
    date = at(2_000);
    answers["/v1/customers/customer-1"] = shows(sampleCustomer());
    await makeDue();
    await fetchDue();
    expect(await rowOf(db, "customers", "customer-1")).toMatchObject({ deleted_at: null });
  });
});

describe("a dispute without its object", () => {
  afterEach(() => emptyAll(db));

  test("reads all charged-back transactions, page by page, with their orders", async () => {
    const order = (n: number) => sampleOrder({ id: `order-${n}`, status: "chargeback", updated_at: at(5) });
    const sale = (n: number, embedded: boolean) => ({
      ...sampleTransaction({ id: `sale-${n}`, order_id: `order-${n}`, status: "chargeback" }),
      ...(embedded ? { order: order(n) } : {}),
    });
    answers["/v1/transactions"] = (response, request) => {
      const isFirst = !(request.url ?? "").includes("starting_after");
      const data = isFirst ? [sale(1, true)] : [sale(2, false)];
      sendJson(response, 200, { data, url: "/v1/transactions", has_more: isFirst });
    };
    answers["/v1/orders/order-2"] = shows(order(2));
    const seq = await storeEvent(db, "dispute.created", { id: "dp-1", amount: 5 });
    await applyBatch(deps(), [seq]);
    await walk();
    expect(asked[0]).toContain("status=chargeback");
    expect(await waiting(), "an order that was not embedded is read by its id").toMatchObject([
      { resource: "order", id: "order-2" },
    ]);
    await fetchDue();
    const chargebacks = await db("mirror.chargebacks").orderBy("key").select("key", "state", "transaction_id");
    expect(chargebacks).toEqual([
      { key: "order-1", state: "opened", transaction_id: "sale-1" },
      { key: "order-2", state: "opened", transaction_id: "sale-2" },
    ]);
    expect(await waiting()).toEqual([]);
  });

  test("one that the database refuses holds up neither its page nor the pages after it", async () => {
    const heal = await poisonOrder(db, "poison");
    try {
      answers["/v1/transactions"] = (response, request) => {
        const isFirst = !(request.url ?? "").includes("starting_after");
        const ids = isFirst ? ["order-1", "poison", "order-2"] : ["order-3"];
        const data = ids.map((id) => ({
          ...sampleTransaction({ id: `sale-${id}`, order_id: id, status: "chargeback" }),
          order: sampleOrder({ id, status: "chargeback", description: "of jane@example.com" }),
        }));
        sendJson(response, 200, { data, has_more: isFirst });
      };
      await want(disputes);
      const using = deps();
      await walkDisputes(using, new AbortController().signal);
      const sales = ["sale-order-1", "sale-order-2", "sale-order-3", "sale-poison"];
      expect(await db("mirror.transactions").orderBy("id").pluck("id")).toEqual(sales);
      expect(await db("mirror.orders").orderBy("id").pluck("id")).toEqual(["order-1", "order-2", "order-3"]);
      expect(await waiting()).toMatchObject([{ last_error: "database error 23514" }]);
      expect(using.logged()).toContain('"id":"poison"');
      expect(using.logged()).not.toContain("jane");
    } finally {
      await heal();
    }
    await makeDue();
    await walk();
    expect(await rowOf(db, "orders", "poison")).toMatchObject({ status: "chargeback" });
    expect(await waiting()).toEqual([]);
  });

  test("a list without an end is left between two pages when the worker stops, and begun again later", async () => {
    const stop = new AbortController();
    let pages = 0;
    answers["/v1/transactions"] = (response) => {
      if (++pages === 3) stop.abort(new Error("the worker stops"));
      const data = [sampleTransaction({ id: `sale-${pages}`, status: "chargeback" })];
      sendJson(response, 200, { data, has_more: true });
    };
    await want(disputes);
    await want();
    expect(await walk(stop.signal)).toBe(1);
    expect(await fetchDue(), "single objects are read apart").toBe(1);
    expect(await waiting()).toMatchObject([{ resource: "disputed-transactions" }, { id: "order-1" }]);
    await makeDue();
    expect(await walk(stop.signal), "due again").toBe(1);
  });
});
