import type { Knex } from "knex";
import { type ServiceClient, createServiceClient } from "../core/client/service-client.ts";
import { type Clock, createServiceClock, wallClock as trueClock } from "../platform/clock.ts";
import { type Encryption, createEncryption, ensureLocalKey } from "../platform/encryption.ts";
import { ConfigurationError } from "../platform/errors.ts";
import type { Log } from "../platform/log.ts";
import { once } from "../platform/once.ts";
import { type PoolUse, createDatabase, createPool, useOfKnex, useOfPool } from "../platform/postgres/pool.ts";
import { assertDirect, assertReachable } from "../platform/postgres/reachable.ts";
import type { Pooling } from "../platform/postgres/session-settings.ts";
import { systemRandom } from "../platform/random.ts";
import { registerSecret } from "../platform/redaction.ts";
import type { BackendLocation } from "../core/queue/backend.ts";
import type { Answers, ServiceLocation } from "./answers.ts";
import type { LiveScreen } from "./cli/live-screen.ts";
import type { Config, LoadedConfig, Secrets } from "./config/config.ts";
import type { Runtime, WorkingPart } from "./runtime.ts";

/** The most connections that each pool of a process opens. The queue has its own pool (queue/backend.ts). */
export const poolSizes = { database: 8, inbox: 2 } as const;

/** How long one flush of the inbox may take before senders are told to retry. */
const flushTimeoutMs = 5_000;

export interface RuntimeSettings {
  /** Applies to the pool's connections; see `DatabaseOptions`. Default: unlimited. */
  statementSilenceLimitMs?: (config: Config) => number;
  /** The database as the process that started this one reaches it. It is neither started nor looked for again. */
  databaseUrl?: string;
  /** The machine's clock, where it is not to be the true one. */
  wallClock?: Clock;
  live?: LiveScreen | null;
}

export function createRuntime(
  parts: readonly WorkingPart[],
  { config, secrets, settings }: LoadedConfig,
  log: Log,
  { statementSilenceLimitMs, databaseUrl: givenUrl, wallClock = trueClock, live = null }: RuntimeSettings = {},
): Runtime {
  const closers: (() => Promise<void>)[] = [];
  const pools = new Map<string, () => PoolUse>();
  const serviceClock = createServiceClock(wallClock);
  const serviceClients = new Map<string, ServiceClient>();
  let closing: Promise<void> | undefined;

  const pooling: Pooling | undefined = secrets.databaseDirectUrl === null ? undefined : "transaction";
  const databaseUrl = once(async () => {
    if (givenUrl !== undefined) {
      registerSecret(givenUrl);
      return givenUrl;
    }
    if (secrets.databaseUrl !== null) {
      await assertReachable(secrets.databaseUrl, { pooling });
      return secrets.databaseUrl;
    }
    const { startEmbeddedPostgres } = await import("../platform/embedded/embedded-postgres.ts");
    const server = await startEmbeddedPostgres({ dataDir: config.dataDir, log });
    closers.push(() => server.stop());
    registerSecret(server.url);
    return server.url;
  });
  const directUrl = once(async () => {
    const url = await databaseUrl();
    if (secrets.databaseDirectUrl === null) return url;
    await assertDirect(secrets.databaseDirectUrl, url);
    return secrets.databaseDirectUrl;
  });
  const pooled = (url: string) => ({
    url,
    poolMax: poolSizes.database,
    ...(statementSilenceLimitMs === undefined ? {} : { receiveTimeoutMs: statementSilenceLimitMs(config) }),
    log,
  });
  const db = once(async () => {
    const knex = createDatabase({
      ...pooled(await databaseUrl()),
      pooling,
      applicationName: `tallyhook ${log.bindings()["name"]}`,
    });
    closers.push(() => knex.destroy());
    pools.set("database", () => useOfKnex(knex));
    return knex;
  });
  let standby: Knex | undefined;
  async function reportsStandby(): Promise<Knex> {
    const url = secrets.reportsDatabaseUrl;
    if (url === null) throw new Error("there is no standby for reports");
    await assertReachable(url, { variable: "REPORTS_DATABASE_URL" });
    if (standby === undefined) {
      const made = createDatabase({
        ...pooled(url),
        applicationName: `tallyhook ${log.bindings()["name"]} reports`,
      });
      standby = made;
      closers.push(() => made.destroy());
      pools.set("reports", () => useOfKnex(made));
    }
    return standby;
  }
  const inboxPool = once(async () => {
    const pool = createPool({
      url: await databaseUrl(),
      pooling,
      max: poolSizes.inbox,
      applicationName: "tallyhook inbox",
      connectTimeoutMs: flushTimeoutMs,
      // Longer than the flush's own limit, at which everything waiting for the flush is refused at once.
      statementTimeoutMs: flushTimeoutMs + 250,
      queryTimeoutMs: flushTimeoutMs + 500,
      log,
    });
    closers.push(() => pool.end());
    pools.set("inbox", () => useOfPool(pool));
    return pool;
  });
  const queue = once(async () => {
    const location: BackendLocation =
      secrets.redisUrl === null
        ? { kind: "postgres", url: await directUrl() }
        : { kind: "redis", url: secrets.redisUrl };
    const { createJobQueue } = await import("../core/queue/job-queue.ts");
    const { assertQueueSchema } = await import("../core/queue/backend.ts");
    if (location.kind === "postgres") await assertQueueSchema(await db());
    const made = createJobQueue({ log }, location);
    closers.push(() => made.close());
    return made;
  });

  const ask: Answers = {};
  const runtime: Runtime = {
    parts,
    ask,
    config,
    secrets,
    settings,
    log,
    wallClock,
    live,
    serviceClock,
    random: systemRandom,
    databaseUrl,
    directUrl,
    db,
    reportsStandby,
    poolUse: () => [...pools].map(([name, use]) => ({ name, use: use() })),
    watchPool: (name, use) => void pools.set(name, use),
    inboxPool,
    queue,
    encryption: once(() => makeEncryption(config, secrets)),
    serviceClient(location = serviceLocation(config, secrets)) {
      const key = JSON.stringify([location.baseUrl, location.apiKey]);
      const made = serviceClients.get(key);
      if (made !== undefined) return made;
      const client = createServiceClient({
        ...location,
        log,
        wallClock,
        serviceClock,
        random: systemRandom,
      });
      serviceClients.set(key, client);
      closers.push(() => client.close());
      return client;
    },
    onClose: (close) => void closers.push(close),
    close: () => (closing ??= closeAll(log, closers)),
  };
  for (const part of parts) Object.assign(ask, part.answers?.(runtime));
  return runtime;
}

async function closeAll(log: Log, closers: (() => Promise<void>)[]): Promise<void> {
  for (const close of closers.reverse()) {
    try {
      await close();
    } catch (err) {
      log.warn({ err }, "a resource did not close cleanly");
    }
  }
}

async function makeEncryption(config: Config, secrets: Secrets): Promise<Encryption> {
  const previous = secrets.previousEncryptionKeys;
  if (secrets.encryptionKey !== null) {
    return createEncryption({ current: secrets.encryptionKey, previous });
  }
  if (config.encryptionKey === "local") {
    return createEncryption({ current: await ensureLocalKey(config.dataDir), previous });
  }
  throw new ConfigurationError(
    "TALLYHOOK_ENCRYPTION_KEY is not set, and secrets in the database are encrypted with it. Set it to 64 hex digits, " +
      "the same on every machine (openssl rand -hex 32).",
  );
}

/** The key that every sandbox accepts from the start (docs/sandbox.md). */
export const sandboxApiKey = "svc_test_sk_sandbox";

/** Where the service is: the configured one, otherwise the sandbox on this machine. */
export function serviceLocation(config: Config, secrets: Secrets): ServiceLocation {
  if (config.service.kind === "remote" && secrets.serviceApiKey !== null) {
    return { baseUrl: config.service.baseUrl, apiKey: secrets.serviceApiKey };
  }
  return { baseUrl: `http://127.0.0.1:${config.sandbox.port}`, apiKey: sandboxApiKey };
}
