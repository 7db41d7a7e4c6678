import { createHmac } from "node:crypto";
import type { Pool } from "pg";
import type { Knex } from "knex";
import { expect } from "vitest";
import { type Clock, wallClock } from "../../src/platform/clock.ts";
import { createEncryption } from "../../src/platform/encryption.ts";
import { createLog } from "../../src/platform/log.ts";
import { createDatabase, createPool } from "../../src/platform/postgres/pool.ts";
import { testPooling } from "../support/pooling.ts";
import { environmentSecrets } from "../../src/core/receiver/secrets-store.ts";
import { type LiveSecretsOptions, startLiveSecrets } from "../../src/core/receiver/live-secrets.ts";
import {
  type ReceiverDeps,
  type ReceiverOptions,
  type RunningReceiver,
  startReceiver,
} from "../../src/core/receiver/server.ts";
import { type RawAnswer, openConnection, requestBytes } from "./raw-http.ts";

export const secret = "whsec_the-secret-of-the-receiver-tests";
export const encryption = createEncryption({ current: "ab".repeat(32) });

export interface Stand {
  receiver: RunningReceiver;
  port: number;
  db: Knex;
  pool: Pool;
  /** Sequence numbers of every batch that was committed, in order. */
  committed: number[][];
  logged(): string;
  send(body: Buffer | string, options?: SendOptions): Promise<RawAnswer>;
  request(request: Parameters<typeof requestBytes>[0]): Promise<RawAnswer>;
  /** What the inbox holds of these bytes. */
  stored(body: Buffer | string): Promise<StoredRow[]>;
  close(): Promise<void>;
}

export interface StandOptions {
  clock?: Clock;
  options?: Partial<ReceiverOptions>;
  degrading?: ReceiverDeps["degrading"];
  environment?: readonly string[];
  /** Whether an encryption key is configured, without which no stored secret can verify anything. */
  canStoreSecrets?: boolean;
  /** Reads them again at every refusal unless told, so that a refusal does not take a second. */
  secretsTiming?: Pick<LiveSecretsOptions, "reloadEveryMs" | "reloadAtMostEveryMs" | "refreshWaitMs">;
  /** For connecting and for a query of the inbox. */
  databaseTimeoutMs?: number;
}

export interface StoredRow {
  event_id: string;
  type: string | null;
  api_version: string | null;
  event_created_at: Date | null;
  secret_id: string;
  state: string;
  deliveries: number;
}

/** A receiver on a free port and a real database. */
export async function startStand(url: string, stand: StandOptions = {}): Promise<Stand> {
  const { clock = wallClock, environment = [secret], databaseTimeoutMs = 5_000 } = stand;
  const { canStoreSecrets = true, secretsTiming = { reloadAtMostEveryMs: 0 } } = stand;
  const lines: string[] = [];
  const log = createLog({
    level: "debug",
    name: "test",
    destination: { write: (line) => void lines.push(line) },
  });
  const db = createDatabase({
    url,
    pooling: testPooling(),
    poolMax: 4,
    applicationName: "tallyhook test",
    log,
  });
  const pool = createPool({
    url,
    pooling: testPooling(),
    max: 2,
    applicationName: "tallyhook test inbox",
    connectTimeoutMs: databaseTimeoutMs,
    statementTimeoutMs: databaseTimeoutMs,
    queryTimeoutMs: databaseTimeoutMs + 500,
    log,
  });
  const scheme = stand.options?.signature?.scheme ?? "svc";
  const secrets = await startLiveSecrets(
    { db, encryption: canStoreSecrets ? encryption : null, clock, log },
    { scheme, environment: environmentSecrets(scheme, environment), ...secretsTiming },
  );
  const committed: number[][] = [];
  const closeDatabase = async (): Promise<void> => {
    await secrets.close();
    await pool.end();
    await db.destroy();
  };
  const receiver = await startReceiver(
    {
      db,
      pool,
      secrets,
      clock,
      log,
      onCommitted: (seqs) => void committed.push(seqs),
      degrading: stand.degrading ?? [],
    },
    {
      host: "127.0.0.1",
      port: 0,
      signature: { scheme: "svc", toleranceSeconds: 300 },
      maxBodyBytes: 65_536,
      maxConnections: 1_024,
      ...stand.options,
    },
  ).catch(async (error: unknown) => {
    await closeDatabase();
    throw error;
  });
  const request: Stand["request"] = async (parts) => {
    const connection = await openConnection(receiver.port);
    connection.write(requestBytes(parts));
    const answer = await connection.answer({ isHead: parts.method === "HEAD" });
    connection.destroy();
    if (answer === null) throw new Error("the connection ended without an answer");
    return answer;
  };
  return {
    receiver,
    port: receiver.port,
    db,
    pool,
    committed,
    logged: () => lines.join(""),
    request,
    send: (body, options) => request(delivery(body, options)),
    async stored(body) {
      const raw = Buffer.from(body as string);
      return db("inbox.events")
        .where({ raw })
        .orderBy("seq")
        .select("event_id", "type", "api_version", "event_created_at", "secret_id", "state", "deliveries");
    },
    async close() {
      await receiver.close();
      await closeDatabase();
    },
  };
}

export interface SendOptions {
  secret?: string;
  /** Seconds; now unless told. */
  t?: number | string;
  /** Instead of the right one. */
  signature?: string;
  headers?: readonly (readonly [string, string])[];
}

/** A signed delivery. The signature is written out here by hand: not with what is being tested. */
export function delivery(body: Buffer | string, options: SendOptions = {}) {
  const bytes = Buffer.from(body as string);
  const value = options.signature ?? signatureOf(bytes, options);
  const signed = [["SVC-Signature", value] as const];
  return {
    headers: [["Content-Type", "application/json"] as const, ...signed, ...(options.headers ?? [])],
    body: bytes,
  };
}

export function signatureOf(body: Buffer, { secret: key = secret, t = nowSeconds() }: SendOptions = {}) {
  return `t=${t},v1=${createHmac("sha256", key).update(`${t}.`).update(body).digest("hex")}`;
}

export const nowSeconds = (): number => Math.floor(Date.now() / 1000);

let events = 0;

/** An event that no other test sends. */
export function newEvent(fields: Record<string, unknown> = {}): { id: string; body: string } {
  const id = `evt_${process.pid}_${(events += 1)}`;
  const body = JSON.stringify({
    id,
    type: "order.created",
    created_at: "2026-03-01T10:00:00.123Z",
    api_version: "2026-01-01",
    data: { object: { id: "ord_1", status: "pending" } },
    ...fields,
  });
  return { id, body };
}

/** The refusal every caller gets, whatever the reason. */
export function expectRefusal(answer: RawAnswer, status: number, code: string): void {
  expect(answer.status).toBe(status);
  expect(answer.headers.get("content-type")).toBe("application/json; charset=utf-8");
  const { error } = JSON.parse(answer.body) as { error: Record<string, unknown> };
  expect(error).toMatchObject({ code, param: null, field_errors: [] });
  expect(error["request_id"]).toMatch(/^req_[0-9a-f]{32}$/);
  expect(answer.headers.get("x-request-id")).toBe(error["request_id"]);
}

/** Waits for something that happens without a signal of its own. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** Resolves with the milliseconds that `work` took. */
export async function timed<T>(work: () => Promise<T>): Promise<{ result: T; ms: number }> {
  const begun = performance.now();
  return { result: await work(), ms: performance.now() - begun };
}
