import type { Knex } from "knex";
import { afterEach, expect, inject, test } from "vitest";
import { completeEvents } from "../../src/core/inbox/claim.ts";
import { replayEvents } from "../../src/core/inbox/retention.ts";
import { eraseHistory, eraseRows, objectsOf } from "../../src/core/mirror/privacy/erase-mirror.ts";
import { markErased } from "../../src/core/mirror/privacy/erased-people.ts";
import type { Snapshot, Resource } from "../../src/core/mirror/snapshot.ts";
import { applySnapshots } from "../../src/core/mirror/write/apply.ts";
import { type Random, seededRandom } from "../../src/platform/random.ts";
import { allReports } from "../../src/parts/reports/catalogue/all.ts";
import { storeRow } from "../inbox/stored-events.ts";
import {
  apply as applySamples,
  at as sampleAt,
  sampleCustomer,
  sampleEntry,
  sampleOrder,
  sampleSubscription,
  sampleTransaction,
  seen,
  shown,
} from "../mirror/samples.ts";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import { ask } from "./ask.ts";

/* What a report says as of a time is signed and filed: the same question must have the same answer for ever. */

let database: TestDatabase | undefined;
afterEach(async () => {
  await database?.destroy();
  database = undefined;
});

const hourMs = 3_600_000;
const firstMs = Date.UTC(2026, 0, 20);
const periods = [
  { from: "2026-01-01", to: "2026-01-31", timeZone: "Europe/Berlin" },
  { from: "2026-01-25", to: "2026-03-10", timeZone: "UTC" },
];
const steps = 120;
const looks = [30, 60, 90];

test.each(inject("isTorture") ? [1, 2, 3, 4, 5, 6] : [1])(
  "every report as of a time prints the same whatever happens later (history %i)",
  async (seed) => {
    database = await createTestDatabase();
    const { db } = database;
    const world = createWorld(db, seededRandom(`as of ${seed}`));
    const printed: { asOf: string; reports: Record<string, unknown> }[] = [];
    for (let step = 0; step < steps; step++) {
      await world.live(step);
      if (!looks.includes(step)) continue;
      const asOf = await databaseTime(db);
      printed.push({ asOf, reports: await printAll(db, asOf) });
    }
    for (const { asOf, reports } of printed) expect(await printAll(db, asOf)).toEqual(reports);
    const [first] = printed;
    expect(await printAll(db, null)).not.toEqual(first?.reports);
  },
);

async function printAll(db: Knex, asOf: string | null): Promise<Record<string, unknown>> {
  const printed: Record<string, unknown> = {};
  for (const { name } of allReports) {
    for (const period of periods) {
      const { rows, about } = await ask(db, name, { ...period, asOf });
      printed[`${name} ${period.from}`] = { rows, sha256: about.sha256, proof: about.proof };
    }
  }
  return printed;
}

async function databaseTime(db: Knex): Promise<string> {
  const { rows } = await db.raw<{ rows: { at: string }[] }>("select clock_timestamp()::text as at");
  return rows[0]?.at ?? "";
}

interface PlayedSale {
  nth: number;
  status: string;
  saleStatus: string;
  refunded: number;
  paidAt: string;
}

type Wire = Record<string, unknown>;

/** A merchant's life, of which events arrive late or never, and lists are read now and then. */
function createWorld(db: Knex, random: Random) {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const sales: PlayedSale[] = [];
  const waiting: { seq: number; order: string }[] = [];
  const applied: number[] = [];
  let now = firstMs;
  const at = (): string => new Date(now).toISOString();
  const canonical = (): string => at().replace("Z", "000Z");
  const currencyOf = (nth: number): string => ["usd", "eur", "jpy"][nth % 3] ?? "usd";

  const orderOf = (sale: PlayedSale, transactions?: readonly Wire[]): Wire =>
    sampleOrder({
      id: `order-${sale.nth}`,
      order_number: `N${sale.nth}`,
      customer_id: `customer-${sale.nth % 5}`,
      status: sale.status,
      currency: currencyOf(sale.nth),
      total: 1_000 + sale.nth,
      subtotal: 1_200 + sale.nth,
      payment_method: { id: "card", card_last_four: "1111", card_brand: pick(["visa", "amex"]) },
      ...(sale.status === "failed" ? { failure_code: "do_not_honor" } : {}),
      ...(sale.nth % 4 === 0 ? { subscription_id: `subscription-${sale.nth % 8}`, subscription_cycle: 2 } : {}),
      created_at: sale.paidAt,
      updated_at: at(),
      ...(transactions === undefined ? {} : { transactions }),
    });
  const own = (sale: PlayedSale): Wire => ({
    id: `sale-${sale.nth}`,
    status: sale.saleStatus,
    amount: 1_000 + sale.nth,
    currency: currencyOf(sale.nth),
    created_at: sale.paidAt,
    updated_at: at(),
  });

  async function apply(seen: boolean, ...objects: [Resource, Wire][]): Promise<void> {
    const observations = objects.map(([resource, object]): Snapshot => ({
      resource,
      object,
      fallbackUpdatedAt: canonical(),
      observedAt: seen ? canonical() : null,
      cause: seen ? "fetch" : "event:1",
    }));
    await db.transaction((trx) => applySnapshots(trx, observations));
  }
  const readSale = (sale: PlayedSale): Promise<void> =>
    apply(true, [
      "transaction",
      sampleTransaction({
        ...own(sale),
        customer_id: `customer-${sale.nth % 5}`,
        order_id: `order-${sale.nth}`,
      }),
    ]);
  const readOrder = (sale: PlayedSale): Promise<void> => apply(true, ["order", orderOf(sale)]);
  /** Its event arrives, and is applied now or later. */
  async function announce(sale: PlayedSale, type: string): Promise<void> {
    await apply(false, ["order", orderOf(sale, [sampleEntry(own(sale))])]);
    const seq = await storeRow(db, { type, createdAt: at() });
    waiting.push({ seq, order: `order-${sale.nth}` });
    if (random() < 0.5) await workOff();
  }
  async function workOff(): Promise<void> {
    const settlements = waiting.splice(0).map(({ seq, order }) => ({
      seq,
      state: "applied" as const,
      reason: null,
      resourceType: "order",
      resourceId: order,
    }));
    applied.push(...settlements.map(({ seq }) => seq));
    await db.transaction((trx) => completeEvents(trx, settlements));
  }

  const deeds: Record<string, () => Promise<void>> = {
    async sell() {
      const sale = {
        nth: sales.length,
        status: "succeeded",
        saleStatus: "pending",
        refunded: 0,
        paidAt: at(),
      };
      sales.push(sale);
      if (random() < 0.7) await announce(sale, "order.succeeded");
      else await readOrder(sale);
      if (random() < 0.7) await readSale(sale);
    },
    async decline() {
      const sale = {
        nth: sales.length,
        status: "failed",
        saleStatus: "failed",
        refunded: 0,
        paidAt: at(),
      };
      sales.push(sale);
      await announce(sale, "order.failed");
      await readSale(sale);
    },
    async settle() {
      const sale = pick(sales.filter(({ saleStatus }) => /p/.test(saleStatus)));
      if (sale === undefined) return;
      sale.saleStatus = sale.saleStatus === "pending" && random() < 0.3 ? "in_progress" : "succeeded";
      if (random() < 0.5) await readSale(sale);
    },
    async readAgain() {
      const sale = pick(sales);
      if (sale !== undefined) await readSale(sale);
    },
    async refund() {
      const sale = pick(sales.filter(({ saleStatus }) => saleStatus === "succeeded"));
      if (sale === undefined) return;
      sale.refunded += 1;
      sale.status = sale.refunded > 2 ? "refunded" : "partially_refunded";
      const refund = sampleTransaction({
        ...own(sale),
        id: `refund-${sale.nth}-${sale.refunded}`,
        type: "refund",
        status: "succeeded",
        amount: 100,
        order_id: `order-${sale.nth}`,
        created_at: at(),
      });
      if (random() < 0.8) await announce(sale, "order.refunded");
      if (random() < 0.8) await apply(true, ["transaction", refund]);
    },
    async dispute() {
      const sale = pick(sales.filter(({ status }) => status !== "failed"));
      if (sale === undefined) return;
      sale.status = pick(["chargeback", "chargeback_dismissed", "chargeback_accepted"]);
      sale.saleStatus = sale.status === "chargeback_dismissed" ? "succeeded" : "chargeback";
      if (random() < 0.5) await announce(sale, "order.chargeback");
      else await readSale(sale);
    },
    async void() {
      const sale = pick(sales.filter(({ saleStatus }) => saleStatus === "pending"));
      if (sale === undefined) return;
      sale.status = sale.saleStatus = "voided";
      await announce(sale, "order.voided");
    },
    async subscribe() {
      const nth = Math.floor(random() * 8);
      await apply(random() < 0.5, [
        "subscription",
        sampleSubscription({
          id: `subscription-${nth}`,
          customer_id: `customer-${nth % 5}`,
          status: pick(["active", "past_due", "canceled", "paused"]),
          plan: {
            id: "plan",
            name: "Monthly",
            amount: 900 + 100 * Math.floor(random() * 3),
            currency: "usd",
          },
          created_at: new Date(firstMs).toISOString(),
          updated_at: at(),
        }),
      ]);
    },
    async meet() {
      const id = `customer-${Math.floor(random() * 5)}`;
      await apply(true, ["customer", sampleCustomer({ id, created_at: at(), updated_at: at() })]);
    },
    async erase() {
      const id = `customer-${Math.floor(random() * 5)}`;
      await markErased(db, id);
      const ids = await objectsOf(db, id);
      await db.transaction(async (trx) => {
        const { hashes } = await eraseHistory(trx, id, ids);
        await eraseRows(trx, id, ids, hashes);
      });
    },
    async replay() {
      const seqs = applied.splice(0);
      await replayEvents(db, seqs);
      const { rows } = await db.raw<{ rows: { seq: string; resource_id: string }[] }>(
        "select seq, resource_id from inbox.progress where seq = any(?::bigint[])",
        [seqs],
      );
      waiting.push(...rows.map(({ seq, resource_id }) => ({ seq: Number(seq), order: resource_id })));
    },
    workOff,
  };
  const chances: Record<string, number> = {
    sell: 8,
    decline: 2,
    settle: 8,
    readAgain: 4,
    refund: 4,
    dispute: 3,
    void: 1,
    subscribe: 4,
    meet: 2,
    erase: 1,
    replay: 1,
    workOff: 2,
  };
  const bag = Object.entries(chances).flatMap(([name, n]) => Array<string>(n).fill(name));

  return {
    /** One thing happens, some hours after the last one. */
    async live(step: number): Promise<void> {
      now = firstMs + step * 7 * hourMs + Math.floor(random() * hourMs);
      await deeds[pick(bag)]?.();
    },
  };
}

test("a sale stays in the cut-off of a time at which only its order had shown it settled", async () => {
  database = await createTestDatabase();
  const { db } = database;
  const entry = sampleEntry({ status: "succeeded", updated_at: sampleAt(2 * 86_400) });
  await applySamples(
    db,
    shown("order", sampleOrder()),
    seen("transaction", sampleTransaction({ status: "pending" }), 1),
    shown("order", sampleOrder({ updated_at: sampleAt(2 * 86_400), transactions: [entry] })),
  );
  const asOf = await databaseTime(db);
  const march1st = { from: "2025-03-01", to: "2025-03-01" };
  const print = async () => ({
    sales: (await ask(db, "cut-off", { ...march1st, asOf })).rows,
    balance: (await ask(db, "month-end", { ...march1st, asOf })).rows,
  });
  const printed = await print();
  expect(printed.sales).toMatchObject([{ sale: "sale-1", settled_on: "2025-03-03" }]);
  expect(printed.balance).toMatchObject([{ unsettled_closing: "1000" }]);
  // The nightly run reads the sale itself.
  await applySamples(db, seen("transaction", sampleTransaction({ updated_at: sampleAt(2 * 86_400) }), 2 * 86_400 + 90));
  expect(await print()).toEqual(printed);
});
