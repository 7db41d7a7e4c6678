import { afterAll, beforeAll, expect, test } from "vitest";
import { signatureScheme } from "../../src/core/contract/signature/signature-scheme.ts";
import { registerDoctor } from "../../src/main/cli/doctor/doctor.ts";
import { migrateQueueSchema } from "../../src/core/queue/backend.ts";
import { runCommand } from "../main/cli/command-line.ts";
import { at, sampleOrder } from "../mirror/samples.ts";
import { eventually } from "../support/eventually.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { type Deployment, layOutDeployment, webhookSecret } from "./deployment.ts";
import { killPrograms } from "./program.ts";

const database = useTestDatabase();
let deployment: Deployment;
beforeAll(async () => {
  const { url: databaseUrl, directUrl: databaseDirectUrl } = database;
  await migrateQueueSchema(databaseDirectUrl);
  deployment = await layOutDeployment({ databaseUrl, databaseDirectUrl });
  await Promise.all([deployment.startReceiver(), deployment.startWorker()]);
});
afterAll(killPrograms);

/** Sends an event as the service does; returns its id. */
async function send(id: string, seconds: number): Promise<string> {
  const eventId = `evt_${id}_${seconds}`;
  const object = sampleOrder({ id, updated_at: at(seconds) });
  const body = Buffer.from(
    JSON.stringify({
      id: eventId,
      type: seconds === 0 ? "order.created" : "order.updated",
      created_at: at(seconds),
      data: { object },
    }),
  );
  const signature = signatureScheme("svc").sign({
    body,
    secrets: [webhookSecret],
    at: new Date(),
    messageId: eventId,
  });
  const headers = { "content-type": "application/json", ...signature };
  const answer = await fetch(deployment.webhooksUrl, { method: "POST", headers, body });
  expect(answer.status).toBe(200);
  return eventId;
}

const areApplied = async (ids: readonly string[]): Promise<boolean> => {
  const rows = await database
    .db("inbox.receipts")
    .join("inbox.progress", "inbox.progress.seq", "inbox.receipts.seq")
    .whereIn("event_id", ids)
    .where({ state: "applied" });
  return rows.length === ids.length;
};

const readiness = async (): Promise<{ status: string; details?: string[] }> =>
  (await fetch(deployment.readyUrl)).json() as Promise<{ status: string; details?: string[] }>;

const inboxOfDoctor = async (): Promise<string> => {
  const env = deployment.environment;
  const { out } = await runCommand(registerDoctor, ["doctor", "--json"], { env });
  const { findings } = JSON.parse(out) as { findings: { check: string; detail: string }[] };
  return findings.find(({ check }) => check === "inbox")?.detail ?? "";
};

test("a row that is locked for over a minute holds up its own event alone; readyz and doctor say whom it waits for", async () => {
  const created = await send("held", 0);
  await eventually("the order is there", () => areApplied([created]));
  const session = await database.db.transaction();
  const {
    rows: [{ pid }],
  } = await session.raw<{ rows: [{ pid: number }] }>(
    "select pg_backend_pid() as pid from mirror.orders where id = 'held' for update",
  );
  const sentMs = performance.now();
  const held = await send("held", 5);
  const others = await Promise.all(Array.from({ length: 20 }, (_, n) => send(`other-${n}`, 0)));
  await eventually("its neighbours are applied", () => areApplied(others));
  // One lock time-out takes two seconds.
  expect(performance.now() - sentMs).toBeLessThan(10_000);
  expect(await readiness()).toEqual({ status: "ok", reasons: [] });
  const details = await eventually("readyz says what waits", async () => (await readiness()).details, {
    withinMs: 90_000,
    everyMs: 1_000,
  });
  expect(performance.now() - sentMs).toBeGreaterThan(59_000);
  expect(details).toEqual([expect.stringMatching(`^1 event waits for a lock, the first for .* of process ${pid}$`)]);
  const said = await inboxOfDoctor();
  expect(said).toMatch(new RegExp(`1 event waits for a lock, .* of process ${pid} \\(.*query`));
  await session.rollback();
  await eventually("the event is applied", () => areApplied([held]));
  await eventually("readyz is ok", async () => (await readiness()).status === "ok");
});
