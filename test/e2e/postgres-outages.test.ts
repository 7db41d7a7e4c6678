import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import type { Knex } from "knex";
import { createDatabase } from "../../src/platform/postgres/pool.ts";
import { seededRandom } from "../../src/platform/random.ts";
import { signatureScheme } from "../../src/core/contract/signature/signature-scheme.ts";
import { eventually } from "../support/eventually.ts";
import { type OwnServer, startOwnServer } from "../support/own-server.ts";
import { audit, faultless } from "./audit.ts";
import { type Deployment, layOutDeployment, webhookSecret } from "./deployment.ts";
import { createHistory } from "./history.ts";
import { settledFromNow, storedAreSettled } from "./inbox-progress.ts";
import { type Program, killPrograms, runTallyhook } from "./program.ts";
import { type Sender, startSender } from "./sender.ts";

/** One deployment, always under load, goes through these one after the other; nothing is restarted. */
describe("a deployment on PostgreSQL alone under load", () => {
  const history = createHistory(seededRandom("postgres outages"));
  /** Sent again and again, under several signatures: after the first time it is a duplicate. */
  const probe = history.next();
  let server: OwnServer;
  let db: Knex;
  let deployment: Deployment;
  let programs: Program[];
  let sender: Sender;

  beforeAll(async () => {
    server = await startOwnServer();
    db = createDatabase({ url: server.url, poolMax: 2, applicationName: "tallyhook test" });
    deployment = await layOutDeployment({ databaseUrl: server.url });
    programs = await Promise.all([deployment.startReceiver(), deployment.startWorker()]);
    sender = startSender(
      { history, random: seededRandom("postgres outages") },
      {
        url: deployment.webhooksUrl,
        secret: webhookSecret,
        eventsPerSecond: inject("isTorture") ? 100 : 25,
      },
    );
  });

  afterAll(async () => {
    await sender?.abort();
    await killPrograms();
    await db?.destroy();
    await server?.destroy();
  });

  /** The status that the probe gets when it is signed with this secret. */
  const statusFor = async (secret: string): Promise<number> => {
    const { id: messageId, body } = probe;
    const headers = signatureScheme("svc").sign({
      body,
      secrets: [secret],
      at: new Date(),
      messageId,
    });
    const answer = await fetch(deployment.webhooksUrl, { method: "POST", headers, body });
    await answer.arrayBuffer();
    return answer.status;
  };

  const secrets = async (args: readonly string[], input?: string): Promise<string> => {
    const command = runTallyhook(["secrets", ...args], deployment.environment, input);
    expect(await command.exited, command.output()).toEqual({ code: 0, signal: null });
    return command.output();
  };

  const addSecret = async (value: string): Promise<string> => {
    const id = /^db:\S+/m.exec(await secrets(["add"], `${value}\n`));
    if (id === null) throw new Error("secrets add did not name the secret");
    return id[0];
  };

  const isAnswered = (secret: string, status: number, withinMs: number): Promise<true> =>
    eventually(`the receiver answers ${status}`, async () => (await statusFor(secret)) === status, {
      withinMs,
    });

  test("secrets are added, overlap and end in running receivers", async () => {
    const [older, newer] = ["whsec_older_of_the_two", "whsec_newer_of_the_two"];
    expect(await statusFor(webhookSecret)).toBe(200);
    expect(await statusFor(older)).toBe(401);

    const olderId = await addSecret(older);
    await isAnswered(older, 200, 5_000);
    await addSecret(newer);
    await isAnswered(newer, 200, 5_000);

    const end = new Date(Date.now() + 4_000);
    await secrets(["retire", olderId, "--at", end.toISOString()]);
    if (Date.now() < end.getTime() - 200) {
      expect([await statusFor(older), await statusFor(newer)]).toEqual([200, 200]);
    }
    await isAnswered(older, 401, Math.max(0, end.getTime() - Date.now()) + 5_000);
    expect(Date.now()).toBeGreaterThanOrEqual(end.getTime());
    expect([await statusFor(newer), await statusFor(webhookSecret)]).toEqual([200, 200]);
  });

  const readyCode = async (): Promise<number> => (await fetch(deployment.readyUrl)).status;

  test("a database that hangs: 503 within ten seconds, then it goes on", async () => {
    const before = sender.counts.refused503;
    server.pause();
    await eventually("senders are refused", () => sender.counts.refused503 > before + 24, {
      withinMs: 15_000,
    });
    expect(await readyCode()).toBe(503);
    server.resume();
    await sender.whenAcknowledged(100);
    await settledFromNow(db, { withinMs: 40_000 });
    await eventually("readyz says ok", async () => (await readyCode()) === 200);
  });

  test("a database that is down: 503, then it goes on", async () => {
    const before = sender.counts.refused503;
    await server.stop();
    await eventually("senders are refused", () => sender.counts.refused503 > before + 50);
    await eventually("readyz says so", async () => (await readyCode()) === 503);
    await server.restart();
    await sender.whenAcknowledged(100);
    await settledFromNow(db, { withinMs: 40_000 });
    await eventually("readyz says ok", async () => (await readyCode()) === 200);
  });

  test("and after all of it, the mirror equals the model, and the same processes run", async () => {
    expect(await statusFor(webhookSecret)).toBe(200);
    await sender.finish();
    await storedAreSettled(db);
    const acknowledged = new Map([...sender.acknowledged, [probe.id, probe]]);
    expect(await audit(db, acknowledged, history.model)).toEqual(faultless);
    expect(sender.counts.slowestAnswerMs).toBeLessThan(10_000);
    expect(programs.map((program) => program.isRunning())).toEqual([true, true]);
  });
});
