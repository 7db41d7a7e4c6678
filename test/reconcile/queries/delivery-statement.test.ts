import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Observation } from "../../../src/mirror/observation.ts";
import { deliveryStatement } from "../../../src/reconcile/queries/delivery-statement.ts";
import { storeRow } from "../../inbox/stored-events.ts";
import {
  apply,
  at,
  sampleCustomer,
  sampleOrder,
  sampleSubscription,
  seen,
  shown,
} from "../../mirror/samples.ts";
import { createTestDatabase } from "../../support/database.ts";
import type { TestDatabase } from "../../support/database.ts";
import { emptyAll } from "../../worker/worker-stand.ts";

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.destroy());
beforeEach(() => emptyAll(database.db));

const window = { from: new Date(at(-60)), to: new Date(at(3_600)), lateAfterSeconds: 600 };

const statement = async () => (await deliveryStatement(database.db, window)).lines;

/** An event in the inbox: made at the service at a second, received at another. */
async function received(
  type: string,
  resourceId: string,
  { made = 0, came = 1 }: { made?: number; came?: number } = {},
): Promise<void> {
  const resourceType = type.split(".")[0] ?? "";
  const seq = await storeRow(database.db, { type, resourceType, resourceId, state: "applied" });
  await database
    .db("inbox.receipts")
    .where({ seq })
    .update({ event_created_at: at(made), received_at: at(came) });
}

/** Found by the nightly run, not told by an event. */
const walked = (resource: Observation["resource"], object: Record<string, unknown>) => ({
  ...seen(resource, object, 1_800),
  cause: "reconcile:7",
});

describe("the delivery statement", () => {
  it("counts what was announced and received", async () => {
    await apply(
      database.db,
      shown("order", sampleOrder()),
      shown("customer", sampleCustomer()),
      shown("subscription", sampleSubscription()),
    );
    await received("order.created", "order-1");
    await received("order.succeeded", "order-1");
    await received("customer.created", "customer-1");
    await received("subscription.created", "subscription-1");
    const whole = { announced: 1, received: 1, late: 0, missed: 0 };
    expect(await statement()).toEqual([
      { family: "customer", event: "customer.created", ...whole },
      { family: "order", event: "order.succeeded", ...whole },
      { family: "subscription", event: "subscription.created", ...whole },
    ]);
  });

  it("counts what was found by a walk alone as missed, an earlier event of the object notwithstanding", async () => {
    await apply(
      database.db,
      walked("order", sampleOrder({ status: "refunded", updated_at: at(300) })),
    );
    await received("order.succeeded", "order-1", { made: 0 });
    await received("order.refunded", "order-1", { made: 100 });
    expect(await statement()).toEqual([
      { family: "order", event: "order.refunded", announced: 1, received: 0, late: 0, missed: 1 },
    ]);
  });

  it("counts as late what came after the limit, or after a read had shown it", async () => {
    await apply(database.db, shown("order", sampleOrder({ id: "slow" })));
    await received("order.succeeded", "slow", { came: 601 });
    await apply(database.db, walked("order", sampleOrder({ id: "overtaken", status: "failed" })));
    const afterTheWalk = (Date.now() - Date.parse(at(0))) / 1_000 + 60;
    await received("order.failed", "overtaken", { came: afterTheWalk });
    expect(await statement()).toMatchObject([
      { event: "order.failed", received: 1, late: 1, missed: 0 },
      { event: "order.succeeded", received: 1, late: 1, missed: 0 },
    ]);
  });

  it("takes any event about the order for that of a chargeback", async () => {
    await apply(
      database.db,
      walked("order", sampleOrder({ id: "a", status: "chargeback", updated_at: at(50) })),
      walked("order", sampleOrder({ id: "b", status: "chargeback", updated_at: at(50) })),
    );
    await received("order.dispute_opened", "a", { made: 50 });
    expect(await statement()).toEqual([
      {
        family: "order",
        event: "order.(chargeback)",
        announced: 2,
        received: 1,
        late: 0,
        missed: 1,
      },
    ]);
  });

  it("tells the kinds of a subscription's change apart", async () => {
    const subscription = (id: string, fields: Record<string, unknown>) =>
      walked("subscription", sampleSubscription({ id, updated_at: at(600), ...fields }));
    await apply(
      database.db,
      subscription("charged", { current_billing_cycle: 2, current_period_start: at(600) }),
      subscription("updated", { current_period_start: at(-86_400 * 9), current_billing_cycle: 2 }),
      subscription("canceled", { status: "canceled", canceled_at: at(600) }),
      subscription("late", { status: "past_due" }),
    );
    expect((await statement()).map(({ event, missed }) => [event, missed])).toEqual([
      ["subscription.canceled", 1],
      ["subscription.charged", 1],
      ["subscription.updated", 1],
    ]);
  });

  it("leaves out what lies outside the window, and the first fill", async () => {
    await apply(
      database.db,
      walked("order", sampleOrder({ id: "old", updated_at: at(-61) })),
      walked("order", sampleOrder({ id: "new", updated_at: at(3_600) })),
      { ...seen("order", sampleOrder({ id: "filled" }), 1_800), cause: "import" },
      { ...seen("customer", sampleCustomer(), 1_800), cause: "import" },
    );
    await apply(
      database.db,
      shown("customer", sampleCustomer({ phone: "+1", updated_at: at(90) })),
    );
    expect(await statement()).toEqual([]);
  });

  it("says what it cannot see", async () => {
    expect((await deliveryStatement(database.db, window)).note).toContain("last state");
  });
});
