import { randomBytes, randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import type { ServiceClient } from "../../../../core/client/service-client.ts";
import { countOpenWork } from "../../../../core/inbox/queries.ts";
import { wallClock } from "../../../../platform/clock.ts";
import type { DiskSpace } from "../../../../platform/disk-space.ts";
import { startTemporaryServer } from "../../../../platform/embedded/temporary-server.ts";
import { TallyhookError } from "../../../../platform/errors.ts";
import { createLog } from "../../../../platform/log.ts";
import { addSecret } from "../../../../core/receiver/secrets-store.ts";
import { startSandbox } from "../../start-sandbox.ts";
import { loadConfig } from "../../../../app/config/config.ts";
import { createRuntime, sandboxApiKey } from "../../../../app/create-runtime.ts";
import type { Runtime, WorkingPart } from "../../../../app/runtime.ts";
import { type SandboxCalls, createSandboxCalls } from "../demo/sandbox-calls.ts";
import { migrateAll } from "../../../../app/processes/migrate-all.ts";
import { runReceiver } from "../../../../app/processes/run-receiver.ts";
import { assertSandbox } from "../trigger.ts";
import { type Shop, createShop } from "../trigger-shop.ts";
import { runWorker } from "../../../../app/processes/run-worker.ts";
import { type Commands, createCommands } from "./commands.ts";
import { type Pager, startPager } from "./pager.ts";

/** The whole system of a game day: database, sandbox, receiver, worker and a pager, all its own, on loopback. */
export interface Stage {
  db: Knex;
  control: SandboxCalls["control"];
  /** The service as a merchant calls it, with the worker's idea of its time. */
  client: ServiceClient;
  shop: Shop;
  pager: Pager;
  commands: Commands;
  endpointId: string;
  /** The settings by which a second terminal reaches this system. */
  environment: Readonly<Record<string, string>>;
  folder: string;
  /** The error of the receiver's clock. */
  receiverSkew: { ms: number };
  /** The disk space that the worker is shown for the database. */
  disk: DiskSpace;
  /** Notes between the steps of a fault. */
  notes: Map<string, string>;
  signal: AbortSignal;
  /** Stops the worker in order and starts it with these additional settings. */
  restartWorker(settings?: Readonly<Record<string, string>>): Promise<void>;
  /** Waits until this holds. Throws at the limit: something hangs. */
  until(what: string, holds: () => Promise<boolean>): Promise<void>;
  /** Whether a webhook of the sandbox gets into the inbox now. */
  delivers(): Promise<boolean>;
}

const untilLimitMs = 60_000;
const deliveryLimitMs = 10_000;

const roomyDisk = { freeBytes: 60_000_000_000, totalBytes: 100_000_000_000 };

interface StageOptions {
  parts: readonly WorkingPart[];
  signal: AbortSignal;
  runbooksUrl: string | null;
}

/** Calls `play` with a running system, and removes everything afterwards, even after a failure. */
export async function withStage<T>(
  { parts, signal, runbooksUrl }: StageOptions,
  play: (stage: Stage) => Promise<T>,
): Promise<T> {
  const closers: (() => Promise<void>)[] = [];
  try {
    return await play(await build({ parts, signal, runbooksUrl }, (close) => void closers.push(close)));
  } finally {
    for (const close of closers.reverse()) await close().catch(() => {});
  }
}

async function build(
  { parts, signal, runbooksUrl }: StageOptions,
  onClose: (close: () => Promise<void>) => void,
): Promise<Stage> {
  const silent = createLog({ level: "silent", name: "gameday" });
  const server = await startTemporaryServer({ parent: ".data", kind: "gameday", log: silent });
  onClose(() => server.remove());
  const folder = resolve(server.dataDir);
  const logFile = createWriteStream(join(folder, "gameday.log"));
  onClose(() => new Promise((done) => logFile.end(() => done())));
  const log = createLog({ level: "info", name: "gameday", destination: logFile });
  const pager = await startPager();
  onClose(() => pager.close());
  const sandbox = await startSandbox({ port: 0, host: "127.0.0.1", seed: randomUUID(), log });
  onClose(() => sandbox.close());

  const settingsFile = join(folder, "alerts.jsonc");
  await writeFile(settingsFile, JSON.stringify(alertSettings));
  const environment: Record<string, string> = {
    DATABASE_URL: server.url,
    TALLYHOOK_DATA_DIR: folder,
    HOST: "127.0.0.1",
    PORT: "0",
    ADMIN_PORT: "0",
    DASHBOARD_PORT: "0",
    SANDBOX_PORT: String(sandbox.port),
    TALLYHOOK_ENCRYPTION_KEY: randomBytes(32).toString("hex"),
    ALERT_SETTINGS_FILE: settingsFile,
    ALERT_GAMEDAY_URL: pager.url,
    ALERT_GAMEDAY_SECRET: pager.secret,
    RECONCILE_GRACE_SECONDS: "0",
    ...(runbooksUrl === null ? {} : { RUNBOOKS_URL: runbooksUrl }),
  };
  const load = (more: Readonly<Record<string, string>> = {}) => {
    const loaded = loadConfig({ ...environment, ...more });
    assertSandbox(loaded.config, "gameday", "breaks what it runs against");
    return loaded;
  };

  const receiverSkew = { ms: 0 };
  const skewed = { now: () => new Date(wallClock.now().getTime() + receiverSkew.ms) };
  const receiving = createRuntime(parts, load(), log, { wallClock: skewed });
  onClose(() => receiving.close());
  await migrateAll(receiving);
  const db = await receiving.db();
  const calls = createSandboxCalls(sandbox.url, sandboxApiKey, signal);
  let endpointId = "";
  const receiver = await runReceiver(receiving, {
    signingSecrets: async (url) => {
      const { id, signingSecret } = await calls.registerEndpoint(`${url}/webhooks`);
      endpointId = id;
      const encryption = await receiving.encryption();
      await addSecret({ db, encryption }, "svc", { value: signingSecret, note: `endpoint ${id}` });
      return [];
    },
  });
  environment["PUBLIC_URL"] = receiver.url;

  const commands = createCommands(folder, () => environment);
  onClose(() => commands.close());
  const service = { baseUrl: sandbox.url, apiKey: sandboxApiKey };
  const disk: DiskSpace = { folder, ...roomyDisk };
  let working: Runtime | null = null;
  async function startWorker(settings: Readonly<Record<string, string>> = {}): Promise<Runtime> {
    const runtime = createRuntime(parts, load(settings), log);
    working = runtime;
    await runWorker(runtime, {
      service,
      missingGraceMs: 0,
      without: ["reconcile", "reports", "handlers", "forward"],
      sweepEveryMs: 1_000,
      databaseDisk: () => Promise.resolve({ ...disk }),
    });
    return runtime;
  }
  onClose(async () => working?.close());
  await watchSinceAnHour(db);
  const worker = await startWorker();

  const until = async (what: string, holds: () => Promise<boolean>): Promise<void> => {
    const endsMs = wallClock.now().getTime() + untilLimitMs;
    while (!(await holds())) {
      signal.throwIfAborted();
      if (wallClock.now().getTime() > endsMs) throw new TallyhookError(`It never came: ${what}.`);
      await sleep(200, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
  };
  const isQuiet = async () => {
    const { events, fetches } = await countOpenWork(db);
    return events + fetches === 0;
  };
  await calls.control("POST", "/traffic", { ...traffic, past: true });
  await calls.control("GET", "/idle");
  await until("the traffic in the mirror", isQuiet);
  await commands.run(["reconcile", "--full"]);

  const stage: Stage = {
    db,
    control: calls.control,
    client: worker.serviceClient(service),
    shop: createShop({
      client: worker.serviceClient(service),
      control: calls.control,
      signal,
      warn: () => {},
    }),
    pager,
    commands,
    endpointId,
    environment,
    folder,
    receiverSkew,
    disk,
    notes: new Map(),
    signal,
    until,
    async restartWorker(settings) {
      await working?.close();
      const runtime = await startWorker(settings);
      stage.client = runtime.serviceClient(service);
      stage.shop = createShop({
        client: stage.client,
        control: calls.control,
        signal,
        warn: () => {},
      });
    },
    async delivers() {
      const newest = async () => Number((await db("inbox.receipts").max("seq as seq").first())?.seq);
      const before = await newest();
      await stage.shop.customer();
      const endsMs = wallClock.now().getTime() + deliveryLimitMs;
      while (wallClock.now().getTime() < endsMs) {
        if ((await newest()) > before) return true;
        await sleep(200, undefined, { signal }).catch(() => signal.throwIfAborted());
      }
      return false;
    },
  };
  return stage;
}

const traffic = { orders: 45, subscriptions: 4, refunds: 2, declines: 2, chargebacks: 0 };

/** All to the pager. Fewer refusals than usual are an alert, so that a few orders make one. */
const alertSettings = {
  channels: {
    pager: { kind: "webhook", urlFrom: "ALERT_GAMEDAY_URL", secretFrom: "ALERT_GAMEDAY_SECRET" },
  },
  defaultChannels: ["pager"],
  destinations: { privateHosts: ["127.0.0.1"] },
  rules: { signature_failures: { count: 5 } },
};

/** A missing heartbeat counts only after some minutes of observation. */
async function watchSinceAnHour(db: Knex): Promise<void> {
  const [seen, since] = [wallClock.now(), new Date(wallClock.now().getTime() - 3_600_000)];
  await db("alerts.marks").insert({
    name: "watch",
    value: JSON.stringify({ first: since, since, seen }),
  });
}
