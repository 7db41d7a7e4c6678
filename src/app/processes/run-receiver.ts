import { tallyhook } from "../../platform/command-line.ts";
import { ConfigurationError } from "../../platform/errors.ts";
import { runEvery } from "../../platform/run-every.ts";
import { watchRoundTrips } from "../../core/queue/round-trips.ts";
import { createWakeUps } from "../../core/queue/wake-ups.ts";
import { type ReceiverCounters, trackAnswers, storeAnswers } from "../../core/receiver/counters.ts";
import { recordBeat, recordStop } from "../../core/receiver/heartbeats.ts";
import { lockWaitCheck } from "../../core/receiver/readiness.ts";
import { environmentSecrets } from "../../core/receiver/secrets-store.ts";
import { startLiveSecrets } from "../../core/receiver/live-secrets.ts";
import { startReceiver } from "../../core/receiver/server.ts";
import type { ProcessMetrics } from "../metrics/serve-metrics.ts";
import type { Runtime } from "../runtime.ts";
import type { SigningSecret } from "../../core/contract/signature/verification.ts";
import { setFlagsFromString } from "node:v8";

/** Interval at which the receiver sends a heartbeat and adds its counts of answers to those that alert rules read. */
const tellEveryMs = 10_000;

export interface ReceiverRole {
  /**
   * Secrets that need the receiver's address, because the service issues them for an address. Called once the receiver
   * listens and before `runReceiver` returns.
   */
  signingSecrets?(url: string): Promise<string[]>;
  /** The process' metrics, which then include the receiver's. */
  metrics?: ProcessMetrics;
}

export interface RunningReceiver {
  url: string;
  counters: Readonly<ReceiverCounters>;
}

/**
 * Starts a receiver that ends with the runtime. The database must be migrated. Throws `ConfigurationError` if there is
 * no signing secret: a receiver that cannot verify a request must not look healthy.
 */
export async function runReceiver(runtime: Runtime, role: ReceiverRole = {}): Promise<RunningReceiver> {
  const { config, secrets, log, wallClock } = runtime;
  const { scheme } = config.signature;
  collectRarely();
  const db = await runtime.db();
  const live = await startLiveSecrets(
    {
      db,
      encryption: config.encryptionKey === "none" ? null : await runtime.encryption(),
      clock: wallClock,
      log,
    },
    { scheme, environment: environmentSecrets(scheme, secrets.webhookSecrets) },
  );
  runtime.onClose(() => live.close());
  if (role.signingSecrets === undefined && live.current().length === 0) {
    const [problem] = live.problems();
    throw new ConfigurationError(
      problem ??
        `There is no signing secret. Set SVC_WEBHOOK_SECRETS, or run "${tallyhook("secrets add")}"; without an ` +
          `endpoint at the service yet, "${tallyhook("endpoint register --url https://<your host>/webhooks")}" makes ` +
          "one and keeps its secret.",
    );
  }

  let given: readonly SigningSecret[] = [];
  const queue = await runtime.queue();
  const wakeUps = createWakeUps({ queue, log });
  runtime.onClose(() => wakeUps.close());
  const roundTrips = watchRoundTrips({ queue, log });
  runtime.onClose(() => roundTrips.close());
  const receiver = await startReceiver(
    {
      db,
      pool: await runtime.inboxPool(),
      secrets: {
        current: () => (given.length === 0 ? live.current() : [...given, ...live.current()]),
        refresh: () => live.refresh(),
        markUsed: (id) => live.markUsed(id),
        problems: () => live.problems(),
      },
      clock: wallClock,
      log,
      onCommitted: () => wakeUps.notify(),
      onAnswered: role.metrics === undefined ? undefined : observeWebhooks(role.metrics.observeRequest),
      degrading: [{ name: "queue", check: () => roundTrips.check() }, lockWaitCheck(db)],
    },
    {
      host: config.receiver.host,
      port: config.receiver.port,
      signature: config.signature,
      maxBodyBytes: config.receiver.maxBodyBytes,
      maxConnections: config.receiver.maxConnections,
      places: config.eventPlaces,
    },
  );
  runtime.onClose(() => receiver.close());
  // Before anything asks whether it is ready: the answer is kept for a second.
  if (role.signingSecrets !== undefined) {
    given = environmentSecrets(scheme, await role.signingSecrets(receiver.url));
  }
  role.metrics?.addReceiver(receiver.counters);
  const countAnswers = trackAnswers(receiver.counters);
  const name = `receiver:${process.pid}:${crypto.randomUUID()}`;
  const telling = runEvery({ log, name: "answers" }, tellEveryMs, async () => {
    const answers = countAnswers();
    const { status } = await receiver.readiness();
    await storeAnswers(db, answers);
    await recordBeat(db, name, {
      isReady: status !== "unavailable",
      hasAnswered: answers.size > 0,
    });
    return { more: false };
  });
  // The receiver stops accepting requests first, even if the database hangs.
  runtime.onClose(async () => {
    await receiver.close();
    await telling.close();
    await recordStop(db, name).catch((err: unknown) => {
      log.warn({ err }, "the receiver could not say that it ends; it will be missed until another one runs");
    });
  });
  return { url: receiver.url, counters: receiver.counters };
}

const observeWebhooks =
  (observe: ProcessMetrics["observeRequest"]) =>
  (status: number, seconds: number): void =>
    observe({ method: "POST", route: "/webhooks", status, seconds });

/**
 * Makes V8 collect the whole heap when it has grown to two and a half times its live size after the last collection,
 * instead of half as large again (with `--max-old-space-size=512`) or four times (without it). For a process that
 * handles many small requests: each collection visits all live objects, and they took a fifth of the receiver's CPU
 * time. Harmless when repeated.
 *
 * Unlike the size of the young generation, V8 reads this while it runs, so no start-up option is needed.
 */
function collectRarely(): void {
  setFlagsFromString("--heap-growing-percent=150");
}
