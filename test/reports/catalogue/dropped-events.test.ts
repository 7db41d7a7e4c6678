import { expect, test } from "vitest";
import { storeRow } from "../../inbox/stored-events.ts";
import { apply, sampleCustomer, shown } from "../../mirror/samples.ts";
import { useTestDatabase } from "../../support/use-database.ts";

const database = useTestDatabase();

const january = "2025-01-10T12:00:00.000Z";
const march = "2025-03-10T12:00:00.000Z";

test("a change without an event is not called missed once events of its time were removed", async () => {
  const { db } = database;
  for (const [id, created_at] of [
    ["received", january],
    ["unknown", january],
    ["missed", march],
  ] as const) {
    await apply(db, shown("customer", sampleCustomer({ id, created_at, updated_at: created_at })));
  }
  const seq = await storeRow(db, {
    type: "customer.created",
    createdAt: january,
    state: "applied",
    resourceType: "customer",
    resourceId: "received",
  });
  await db("inbox.receipts").where({ seq }).update({ received_at: january });

  const statement = async (): Promise<unknown[]> => {
    const { rows } = await db.raw<{ rows: unknown[] }>(
      `select event, changes::int, announced::int, received::int, missed::int, healed::int
       from reports.delivery_statement('2025-01-01', '2025-04-01', 'UTC') order by event`,
    );
    return rows;
  };
  const event = "customer.created";
  expect(await statement()).toEqual([{ event, changes: 3, announced: 3, received: 1, missed: 2, healed: 2 }]);
  await db("inbox.dropped").insert({ first_event_at: january, until: "2025-02-20" });
  expect(await statement()).toEqual([
    { event, changes: 2, announced: 2, received: 1, missed: 1, healed: 1 },
    {
      event: `${event}: not known, events of then were removed`,
      changes: 1,
      announced: 1,
      received: 0,
      missed: 0,
      healed: 0,
    },
  ]);
});
