import { beforeEach, describe, expect, test } from "vitest";
import { applyStates } from "../../src/core/mirror/write/apply.ts";
import { decode } from "../../src/core/mirror/resources.ts";
import { compareStates } from "../../src/core/mirror/compare/compare-states.ts";
import { customer } from "../../src/core/mirror/resources/customer.ts";
import { seededRandom } from "../../src/platform/random.ts";
import { canonicalTimestamp } from "../../src/core/contract/timestamp.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { emptyMirror } from "./copies.ts";
import {
  apply,
  at,
  rowOf,
  sampleCustomer,
  sampleEntry,
  sampleOrder,
  sampleSubscription,
  sampleTransaction,
  seen,
  shown,
} from "./samples.ts";

const database = useTestDatabase();
beforeEach(() => emptyMirror(database.db));

const orderRow = () => rowOf(database.db, "orders", "order-1");
const saleRow = () => rowOf(database.db, "transactions", "sale-1");
const customerRow = () => rowOf(database.db, "customers", "customer-1");

describe("an object's row", () => {
  test("shows every field in its column, exactly, and all of it in data", async () => {
    const { db } = database;
    const card = { id: "pm-1", card_brand: "visa", card_last_four: "4242" };
    const order = sampleOrder({
      description: 'A "quoted" \\ text, {with} braces, NULL and 日本語',
      total: Number.MAX_SAFE_INTEGER,
      payment_method: card,
      applied_coupon: { code: "SAVE10" },
      subscription_cycle: 3,
      unknown_field: { kept: ["as", "it", "is", null] },
      updated_at: "2025-03-01T12:00:00.123456+02:00",
    });
    await apply(db, shown("order", order));
    expect(await orderRow()).toMatchObject({
      description: order["description"],
      total: "9007199254740991",
      payment_method_id: "pm-1",
      card_last_four: "4242",
      coupon_code: "SAVE10",
      subscription_cycle: 3,
      data: { unknown_field: { kept: ["as", "it", "is", null] }, payment_method: card },
      last_cause: "event:1",
    });
    const { rows } = await db.raw<{ rows: { at: string }[] }>(
      "select to_char(source_updated_at at time zone 'UTC', 'HH24:MI:SS.US') as at from mirror.orders",
    );
    expect(rows[0]?.at).toBe("10:00:00.123456");
  });

  test("keeps the newer state when an older delivery arrives late, in another batch or in the same", async () => {
    const { db } = database;
    const [old, late] = [sampleOrder({ status: "pending" }), sampleOrder({ updated_at: at(5) })];
    expect((await apply(db, shown("order", late))).outcomes).toEqual([{ outcome: "applied", id: "order-1" }]);
    expect((await apply(db, shown("order", old))).outcomes).toEqual([{ outcome: "stale", id: "order-1" }]);
    expect(await orderRow()).toMatchObject({ status: "succeeded" });
    await emptyMirror(db);
    const both = await apply(db, shown("order", late), shown("order", old));
    expect(both.outcomes.map(({ outcome }) => outcome)).toEqual(["applied", "stale"]);
  });

  test("is not changed by a repeat: one of two copies is applied, the other is stale", async () => {
    const { db } = database;
    const once = shown("order", sampleOrder({ transactions: [sampleEntry()] }));
    const { outcomes } = await apply(db, once, once);
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(["applied", "stale"]);
    const before = await orderRow();
    expect((await apply(db, { ...once, cause: "event:2" })).outcomes[0]?.outcome).toBe("stale");
    expect(await orderRow()).toEqual(before);
    expect(await db("mirror.versions").count()).toEqual([{ count: "2" }]);
  });

  test("follows the service out of every status: none is terminal", async () => {
    const { db } = database;
    const life = ["refunded", "voided", "chargeback_accepted", "failed", "succeeded", "pending"];
    for (const [n, status] of life.entries()) {
      await apply(db, shown("order", sampleOrder({ status, updated_at: at(n) })));
      expect(await orderRow()).toMatchObject({ status });
    }
    const lives = ["canceled", "completed", "active"];
    for (const [n, status] of lives.entries()) {
      await apply(db, shown("subscription", sampleSubscription({ status, updated_at: at(n) })));
      expect(await rowOf(db, "subscriptions", "subscription-1")).toMatchObject({ status });
    }
  });

  test("takes its group whole: a key that the newer state lacks is null", async () => {
    const { db } = database;
    await apply(db, shown("order", sampleOrder({ failure_code: "expired_card", metadata: { a: 1 } })));
    await apply(db, shown("order", sampleOrder({ updated_at: at(5) })));
    const { failure_code, data } = await orderRow();
    expect(failure_code).toBeNull();
    expect(data).not.toHaveProperty("metadata");
  });

  test("says stale for a change of nothing, and applied where only the items are new", async () => {
    const { db } = database;
    await apply(db, shown("order", sampleOrder()));
    const withItems = shown("order", sampleOrder({ items: [{ product_id: "p1" }] }));
    expect((await apply(db, withItems)).outcomes[0]?.outcome).toBe("applied");
    expect((await apply(db, withItems)).outcomes[0]?.outcome).toBe("stale");
    expect(await orderRow()).toMatchObject({ items: [{ product_id: "p1" }] });
  });

  test("keeps items that a list does not show", async () => {
    const { db } = database;
    await apply(db, shown("order", sampleOrder({ items: [{ product_id: "p1" }] })));
    await apply(db, seen("order", sampleOrder({ updated_at: at(5), status: "refunded" }), 9));
    expect(await orderRow()).toMatchObject({ status: "refunded", items: [{ product_id: "p1" }] });
  });

  test("survives names that JavaScript and JSON give a meaning", async () => {
    const { db } = database;
    const metadata = JSON.parse('{"__proto__":{"a":1},"constructor":"x","":"empty","1":"one"}') as unknown;
    await apply(db, shown("order", sampleOrder({ metadata })));
    const { rows } = await db.raw<{ rows: { text: string }[] }>(
      "select data->'metadata' as text from mirror.orders where data->'metadata'->'__proto__'->>'a' = '1'",
    );
    expect(rows).toHaveLength(1);
  });

  test("holds codes of any length, cut in their columns and whole in data", async () => {
    const { db } = database;
    const random = seededRandom("codes");
    // Does not compress, and takes as many bytes a character as there can be.
    const long = (length: number) =>
      Array.from({ length }, () => String.fromCodePoint(0x20000 + Math.floor(random() * 0x8000)));
    const code = () => long(1_000).join("");
    const [status, entryStatus, type] = [code(), code(), code()];
    const [orderId, saleId] = [long(255).join(""), long(255).join("")];
    const entry = sampleEntry({ id: saleId, type, status: entryStatus, currency: code() });
    const { outcomes } = await apply(
      db,
      shown("order", sampleOrder({ id: orderId, status, transactions: [entry] })),
      seen("transaction", sampleTransaction({ type, status }), 9),
      shown("subscription", sampleSubscription({ status })),
    );
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(["applied", "applied", "applied"]);
    const cut = (text: string) => Array.from(text).slice(0, 40).join("");
    const order = await rowOf(db, "orders", orderId);
    expect(order).toMatchObject({ status: cut(status), data: { status } });
    expect(await rowOf(db, "transactions", saleId)).toMatchObject({
      type: cut(type),
      status: cut(entryStatus),
      order_id: orderId,
      inline: { status: entryStatus },
    });
    expect(await saleRow()).toMatchObject({ type: cut(type), status: cut(status) });
    const subscription = await rowOf(db, "subscriptions", "subscription-1");
    expect(subscription).toMatchObject({ status: cut(status), data: { status } });
  });

  test("holds what jsonb refuses as replacement characters", async () => {
    const { db } = database;
    await apply(db, shown("order", sampleOrder({ description: "a\u0000b\ud800", note: "\udc00\u0000" })));
    expect(await orderRow()).toMatchObject({
      description: "a\ufffdb\ufffd",
      data: { note: "\ufffd\ufffd" },
    });
    expect(await db("mirror.versions").pluck("replaced_text")).toEqual([true]);
  });

  test("takes a state with replaced text and one that came with U+FFFD for the same", async () => {
    const { db } = database;
    await apply(db, shown("order", sampleOrder({ note: "a\u0000" })));
    const { ties } = await apply(db, shown("order", sampleOrder({ note: "a\ufffd" })));
    expect(ties).toEqual([]);
    expect(await db("mirror.versions").pluck("replaced_text")).toEqual([true]);
  });

  test("is no drift: what is read is compared as it would be stored", async () => {
    const { db } = database;
    const order = sampleOrder({ description: "a\u0000", note: "\udc00" });
    await apply(db, shown("order", order));
    const decoded = decode(seen("order", order, 60));
    if (!decoded.ok) throw new Error("the order was not read");
    expect(decoded.states.map(({ isReplaced }) => isReplaced)).toEqual([true]);
    expect(await compareStates(db, decoded.states)).toEqual([]);
  });
});

describe("dunning fields, which only events show", () => {
  const failed = (attempt: number, seconds: number) =>
    sampleOrder({
      status: "failed",
      attempt_count: attempt,
      next_retry_at: at(1_000 * attempt),
      updated_at: at(seconds),
    });

  test("are never erased by a read, by another event or by a list", async () => {
    const { db } = database;
    await apply(db, shown("order", failed(2, 1)));
    await apply(db, seen("order", sampleOrder({ status: "failed", updated_at: at(1) }), 9));
    await apply(db, shown("order", sampleOrder({ updated_at: at(20) })));
    expect(await orderRow()).toMatchObject({
      status: "succeeded",
      attempt_count: 2,
      next_retry_at: new Date(at(2_000)),
    });
  });

  test("of two failures at one time, the later attempt stays, in any order", async () => {
    const { db } = database;
    for (const order of [
      [2, 3],
      [3, 2],
    ]) {
      await emptyMirror(db);
      for (const attempt of order) await apply(db, shown("order", failed(attempt, 1)));
      expect(await orderRow()).toMatchObject({ attempt_count: 3 });
    }
  });

  test("are kept from an event that shows nothing else, before the order is known and after", async () => {
    const { db } = database;
    const { id, status, attempt_count, next_retry_at, updated_at } = failed(2, 1);
    const thin = shown("order", { id, status, attempt_count, next_retry_at, updated_at });
    const untimed = shown("order", { id, attempt_count: 3, next_retry_at: null }, at(2));
    const dunning = { attempt_count: 2, next_retry_at: new Date(at(2_000)) };
    expect((await apply(db, thin)).outcomes).toEqual([{ outcome: "partial", id }]);
    expect(await orderRow()).toMatchObject({ ...dunning, version: "", status: null, data: null });
    await apply(db, seen("order", sampleOrder({ status: "failed", updated_at: at(1) }), 9));
    expect(await orderRow()).toMatchObject({ ...dunning, status: "failed" });
    await apply(db, untimed);
    await apply(db, thin);
    expect(await orderRow()).toMatchObject({ attempt_count: 3, next_retry_at: null });
    expect(await db("mirror.versions").where("resource", "order.dunning")).toHaveLength(2);
  });

  test("cannot be ordered without a time, and what a read shows of them is none of theirs", async () => {
    const { db } = database;
    const thin = { id: "order-1", attempt_count: 2 };
    const timeless = { ...shown("order", thin), fallbackUpdatedAt: null };
    const badTime = shown("order", { ...thin, updated_at: "yesterday" });
    const { outcomes } = await apply(db, timeless, badTime, seen("order", thin, 9));
    expect(outcomes).toEqual(outcomes.map(() => ({ outcome: "partial", id: "order-1" })));
    expect(await db("mirror.orders")).toEqual([]);
  });

  test("may be null: a first charge has no next retry", async () => {
    const { db } = database;
    await apply(db, shown("order", sampleOrder({ attempt_count: 1, next_retry_at: null })));
    expect(await orderRow()).toMatchObject({ attempt_count: 1, next_retry_at: null });
  });
});

describe("a transaction's row", () => {
  const order = (status: string, seconds: number, entry: Record<string, unknown> = {}) =>
    sampleOrder({ updated_at: at(seconds), transactions: [sampleEntry({ status, ...entry })] });

  test("is made of the order's entry, until the transaction is seen as itself", async () => {
    const { db } = database;
    await apply(db, shown("order", order("succeeded", 0, { failure_code: "none" })));
    expect(await saleRow()).toMatchObject({
      status: "succeeded",
      amount: "1000",
      order_id: "order-1",
      customer_id: "customer-1",
      processor_transaction_id: "p-1",
      attempt_count: 1,
      data: null,
    });
    const full = sampleTransaction({ description: "as itself", amount: 1_001 });
    await apply(db, seen("transaction", full, 5));
    expect(await saleRow()).toMatchObject({
      amount: "1001",
      data: { description: "as itself" },
      // What only the order's entry knows stays.
      attempt_count: 1,
      failure_code: "none",
      processor_transaction_id: "p-1",
    });
  });

  test("has the status of the later look: the order's entry when the order changed after the read", async () => {
    const { db } = database;
    await apply(db, seen("transaction", sampleTransaction(), 5));
    await apply(db, shown("order", order("chargeback", 9)));
    expect(await saleRow()).toMatchObject({ status: "chargeback", data: { status: "succeeded" } });
    await apply(db, seen("transaction", sampleTransaction({ updated_at: at(9) }), 20));
    expect(await saleRow()).toMatchObject({ status: "succeeded" });
  });

  test("has the status of a later read of its order also when the order itself did not change", async () => {
    const { db } = database;
    await apply(db, seen("transaction", sampleTransaction(), 5));
    await apply(db, seen("order", order("chargeback", 0), 9));
    expect(await saleRow()).toMatchObject({ status: "chargeback" });
  });

  test("is not moved back by an order's event from before the read", async () => {
    const { db } = database;
    await apply(db, seen("transaction", sampleTransaction({ status: "voided", updated_at: at(3) }), 9));
    await apply(db, shown("order", order("succeeded", 5)));
    expect(await saleRow()).toMatchObject({ status: "voided" });
  });

  test("follows the order where some entries have times of their own and others have none", async () => {
    const { db } = database;
    await apply(db, shown("order", order("succeeded", 5, { updated_at: null })));
    await apply(db, shown("order", order("chargeback", 9, { updated_at: at(1) })));
    expect(await saleRow()).toMatchObject({ status: "chargeback" });
  });

  describe("whose entry changed while its order kept its time", () => {
    const early = shown("order", order("chargeback", 1, { updated_at: at(0) }));
    const late = shown("order", order("succeeded", 1, { updated_at: at(1) }));

    test.each([
      ["two events", [early, late]],
      ["the later one first", [late, early]],
    ])("has the status of the later entry: %s", async (_name, observations) => {
      const { db } = database;
      for (const observation of observations) await apply(db, observation);
      expect(await saleRow()).toMatchObject({ status: "succeeded" });
    });

    test("has it also when the order, or the sale itself, was read within the same second", async () => {
      const { db } = database;
      const reads = [
        seen("order", order("chargeback", 1, { updated_at: at(0) }), 1),
        seen("transaction", sampleTransaction({ status: "chargeback" }), 1),
      ];
      for (const read of reads) {
        for (const observations of [
          [read, late],
          [late, read],
        ]) {
          await emptyMirror(db);
          for (const observation of observations) await apply(db, observation);
          expect(await saleRow()).toMatchObject({ status: "succeeded" });
        }
      }
    });

    test("follows a read of the order that came late enough", async () => {
      const { db } = database;
      await apply(db, late);
      const read = order("chargeback", 1, { updated_at: at(0) });
      await apply(db, seen("order", read, 3));
      expect(await saleRow()).toMatchObject({ status: "chargeback" });
    });
  });

  test("belongs to the order that shows it, even if the transaction itself does not say so", async () => {
    const { db } = database;
    await apply(db, shown("order", order("succeeded", 0)));
    await apply(db, seen("transaction", sampleTransaction({ order_id: null }), 5));
    expect(await saleRow()).toMatchObject({ order_id: "order-1" });
  });

  test("belongs to the order that it names itself, whichever order shows it", async () => {
    const { db } = database;
    const own = seen("transaction", sampleTransaction({ order_id: "order-2" }), 5);
    await apply(db, own, shown("order", order("succeeded", 9)));
    expect(await saleRow()).toMatchObject({ order_id: "order-2" });
  });
});

test("failure details of a subscription stay where a view does not show them", async () => {
  const { db } = database;
  const detail = { failure_reason: "declined", attempt_count: 2, next_retry_at: at(99) };
  await apply(db, seen("subscription", sampleSubscription({ status: "past_due", ...detail }), 5));
  await apply(db, shown("subscription", sampleSubscription({ status: "past_due", updated_at: at(9) })));
  expect(await rowOf(db, "subscriptions", "subscription-1")).toMatchObject({
    failure_reason: "declined",
    attempt_count: 2,
    next_retry_at: new Date(at(99)),
  });
});

describe("a customer's tombstone", () => {
  const absent = (seconds: number) =>
    database.db.transaction((trx) =>
      applyStates(
        trx,
        [customer.absence?.state("customer-1", canonicalTimestamp(at(seconds)) ?? "", "fetch")].filter(
          (state) => state !== undefined,
        ),
      ),
    );

  test("comes from a soft deletion, with its time", async () => {
    await apply(database.db, shown("customer", sampleCustomer({ deleted: true, updated_at: at(7) })));
    expect(await customerRow()).toMatchObject({ deleted: true, deleted_at: new Date(at(7)) });
  });

  test("comes from absence, keeps what was known, and yields to a later look", async () => {
    const { db } = database;
    await apply(db, shown("customer", sampleCustomer()));
    await absent(10);
    expect(await customerRow()).toMatchObject({ first_name: "Jane", deleted_at: new Date(at(10)) });
    await apply(db, shown("customer", sampleCustomer({ first_name: "Late", updated_at: at(5) })));
    expect(await customerRow()).toMatchObject({ first_name: "Late", deleted_at: new Date(at(10)) });
    await apply(db, seen("customer", sampleCustomer({ updated_at: at(5) }), 20));
    expect(await customerRow()).toMatchObject({ deleted_at: null });
  });

  test("is none for a customer that was seen in the same second", async () => {
    const { db } = database;
    await absent(10);
    await apply(db, seen("customer", sampleCustomer(), 10));
    expect(await customerRow()).toMatchObject({ deleted_at: null });
  });

  test("is there whichever came first, the absence or the customer", async () => {
    const { db } = database;
    await absent(10);
    await apply(db, shown("customer", sampleCustomer()));
    expect(await customerRow()).toMatchObject({ first_name: "Jane", deleted_at: new Date(at(10)) });
  });

  test("moves on with a later absence", async () => {
    await absent(10);
    await absent(30);
    await absent(20);
    expect(await customerRow()).toMatchObject({ deleted_at: new Date(at(30)) });
  });
});
