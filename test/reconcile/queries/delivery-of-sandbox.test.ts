import { afterAll, beforeAll, expect, it } from "vitest";
import { runReceiver } from "../../../src/cli/receiver.ts";
import { runWorker } from "../../../src/cli/worker.ts";
import { loadConfig } from "../../../src/config.ts";
import { countOpenWork } from "../../../src/inbox/queries.ts";
import { createLog } from "../../../src/platform/log.ts";
import { migrateQueueSchema } from "../../../src/queue/backend.ts";
import { deliveryStatement } from "../../../src/reconcile/queries/delivery-statement.ts";
import { createRuntime } from "../../../src/runtime.ts";
import type { Runtime } from "../../../src/runtime.ts";
import { startTestSandbox } from "../../sandbox/harness.ts";
import type { Json, TestSandbox } from "../../sandbox/harness.ts";
import { createTestDatabase } from "../../support/database.ts";
import type { TestDatabase } from "../../support/database.ts";
import { eventually } from "../../support/eventually.ts";
import { applyAll } from "../identities/whole-mirror.ts";
import { listed } from "../sandbox-observations.ts";

let database: TestDatabase;
let sandbox: TestSandbox;
let runtime: Runtime;

beforeAll(async () => {
  database = await createTestDatabase();
  await migrateQueueSchema(database.url);
  sandbox = await startTestSandbox("delivery");
  const loaded = loadConfig({ DATABASE_URL: database.url, HOST: "127.0.0.1", PORT: "0" });
  runtime = createRuntime(loaded, createLog({ level: "silent", name: "test" }));
});
afterAll(async () => {
  await runtime.close();
  await sandbox.close();
  await database.destroy();
});

const finalEvents: Readonly<Record<string, string>> = {
  succeeded: "order.succeeded",
  failed: "order.failed",
  partially_refunded: "order.refunded",
  refunded: "order.refunded",
};

/** What the sandbox's own log says of the last event of each order and of each customer's first: sent, and lost. */
async function sentAndLost(): Promise<Map<string, { announced: number; missed: number }>> {
  const { orders, customers, hard_deleted } = await sandbox.control("GET", "/snapshot");
  const { data } = await sandbox.control("GET", "/deliveries?limit=50000");
  const { data: events } = await sandbox.control("GET", "/events?limit=50000");
  const lost = new Set(
    (data as Json[]).filter(({ status }) => status === "lost").map((delivery) => delivery.event_id),
  );
  const counts = new Map<string, { announced: number; missed: number }>();
  const count = (type: string, id: string) => {
    const last = (events as Json[]).findLast(
      (event) => event.type === type && event.data.object.id === id,
    );
    const known = counts.get(type) ?? { announced: 0, missed: 0 };
    known.announced += 1;
    if (lost.has(last.id)) known.missed += 1;
    counts.set(type, known);
  };
  for (const { id, status } of orders as Json[]) {
    const type = finalEvents[status];
    if (type !== undefined) count(type, id);
  }
  const ids = (customers as Json[]).map(({ id }) => id as string);
  for (const id of [...ids, ...hard_deleted.customers]) count("customer.created", id);
  return counts;
}

it("agrees with the sandbox's own log of what was sent and lost", async () => {
  const receiver = await runReceiver(runtime, {
    signingSecrets: async (url) => [
      (
        await sandbox.ok("POST", "/v1/webhook_endpoints", {
          url: `${url}/webhooks`,
          enabled_events: ["*"],
        })
      ).signing_secret,
    ],
  });
  expect(receiver.url).not.toBe("");
  const key = { baseUrl: sandbox.url, apiKey: "svc_test_sk_sandbox" };
  await runWorker(runtime, { service: key });
  await sandbox.control("PUT", "/faults", { seed: 3, delivery: { drop: 0.2 } });
  await sandbox.control("POST", "/traffic", { orders: 150, subscriptions: 10, days: 10, seed: 3 });
  await sandbox.control("GET", "/idle");
  await eventually(
    "everything that arrived is applied",
    async () => {
      const open = await countOpenWork(database.db);
      return open.events === 0 && open.fetches === 0;
    },
    { withinMs: 40_000 },
  );
  await applyAll(database.db, await listed(sandbox, "reconcile:1"));

  const { clock } = await sandbox.control("GET", "");
  const { lines } = await deliveryStatement(database.db, {
    from: new Date(0),
    to: new Date(Date.parse(clock.now) + 60_000),
    lateAfterSeconds: 86_400,
  });
  const expected = await sentAndLost();
  expect([...expected.values()].some(({ missed }) => missed > 0)).toBe(true);
  for (const [event, { announced, missed }] of expected) {
    expect(
      lines.find((line) => line.event === event),
      event,
    ).toMatchObject({ announced, missed, received: announced - missed });
  }
});
