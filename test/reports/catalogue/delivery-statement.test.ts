import { afterAll, beforeAll, expect, it } from "vitest";
import { runReceiver } from "../../../src/app/processes/run-receiver.ts";
import { runWorker } from "../../../src/app/processes/run-worker.ts";
import { loadConfig } from "../../../src/app/config/config.ts";
import { countOpenWork } from "../../../src/core/inbox/queries.ts";
import { createLog } from "../../../src/platform/log.ts";
import { migrateQueueSchema } from "../../../src/core/queue/backend.ts";
import { createRuntime } from "../../../src/app/create-runtime.ts";
import type { Runtime } from "../../../src/app/runtime.ts";
import { type Json, type TestSandbox, startTestSandbox } from "../../sandbox/harness.ts";
import { type TestDatabase, createTestDatabase } from "../../support/database.ts";
import { eventually } from "../../support/eventually.ts";
import { applyAll } from "../../reconcile/invariants/whole-mirror.ts";
import { listed } from "../../reconcile/sandbox-observations.ts";
import { allParts } from "../../../src/main/parts.ts";

let database: TestDatabase;
let sandbox: TestSandbox;
let runtime: Runtime;

beforeAll(async () => {
  database = await createTestDatabase();
  await migrateQueueSchema(database.directUrl);
  sandbox = await startTestSandbox("delivery");
  const loaded = loadConfig({ ...database.environment, HOST: "127.0.0.1", PORT: "0" });
  runtime = createRuntime(allParts, loaded, createLog({ level: "silent", name: "test" }));
});
afterAll(async () => {
  await runtime.close();
  await sandbox.close();
  await database.destroy();
});

type Counts = Record<"changes" | "received" | "missed", number>;

/** What the sandbox's own log says of the last event of each order and of each customer's first: sent, and lost. */
async function sentAndLost(): Promise<Record<"order" | "customer", Counts>> {
  const { orders, customers, hard_deleted } = await sandbox.control("GET", "/snapshot");
  const { data: deliveries } = await sandbox.control("GET", "/deliveries?limit=50000");
  const { data: events } = await sandbox.control("GET", "/events?limit=50000");
  const lost = new Set((deliveries as Json[]).flatMap(({ status, event_id }) => (status === "lost" ? [event_id] : [])));
  const count = (ids: readonly string[], isMeant: (event: Json) => boolean): Counts => {
    const missed = ids.filter((id) => {
      const last = (events as Json[]).findLast((event) => event.data.object.id === id && isMeant(event));
      return lost.has(last.id);
    }).length;
    return { changes: ids.length, received: ids.length - missed, missed };
  };
  const idsOf = (all: Json[]) => all.map(({ id }) => id as string);
  return {
    order: count(idsOf(orders), ({ type }) => String(type).startsWith("order.")),
    customer: count([...idsOf(customers), ...hard_deleted.customers], ({ type }) => type === "customer.created"),
  };
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
  const { rows } = await database.db.raw<{ rows: (Counts & { resource: string })[] }>(
    `select resource, sum(changes)::integer as changes, sum(received)::integer as received,
            sum(missed)::integer as missed
     from reports.delivery_statement('-infinity', ?, 'UTC') group by resource`,
    [new Date(Date.parse(clock.now) + 60_000)],
  );
  const expected = await sentAndLost();
  expect(expected.order.missed).toBeGreaterThan(0);
  for (const [resource, counts] of Object.entries(expected)) {
    expect(rows.find((row) => row.resource === resource)).toEqual({ resource, ...counts });
  }
});
