import type { ServiceLocation } from "../../../app/answers.ts";
import { fileURLToPath } from "node:url";
import { type AttemptDeps, attemptRun, idempotencyKeyOf } from "../dispatch/attempt.ts";
import type { Handler } from "../dispatch/define-handler.ts";
import type { HostStart } from "./host/messages.ts";
import { openHostChannel, runHost } from "./host/run-host.ts";
import { type LoadedHandlers, loadFiles, loadHandlers, shownPath } from "./load-handlers.ts";
import { type DispatchDeps, type RunningDispatch, startDispatch } from "../dispatch/start-dispatch.ts";
import { exitCodes } from "../../../platform/errors.ts";
import { createDatabase } from "../../../platform/postgres/pool.ts";
import { createRateLimitedWarnings } from "../../../platform/rate-limited-warnings.ts";
import type { Config } from "../../../app/config/config.ts";
import { handlerFolders, ownHandlers } from "./handler-folders.ts";
import type { Runtime } from "../../../app/runtime.ts";
import { runTracing } from "../../../app/tracing.ts";
import type { Knex } from "knex";
import { changeOf, eventSeqOf, feedSource, readObjects } from "../dispatch/feed-source.ts";
import type { Work } from "../dispatch/recipient.ts";

/** Connections of a process: for the engine, and for handlers; transactional ones keep one each while they run. */
const pools = { engine: 2, handlers: 4, mostHandlers: 16 };

/**
 * Loads the handlers of this deployment that are usable into this process. A file that ends the process when it is
 * imported is named on standard error, with exit code 2. Throws `ConfigurationError` for a folder that cannot be read.
 */
export async function loadOwnHandlers(config: Pick<Config, "handlersDir">): Promise<LoadedHandlers> {
  let loading: string | null = null;
  const nameIt = (): void => {
    if (loading === null) return;
    process.exitCode = exitCodes.configuration;
    process.stderr.write(`tallyhook: This command was ended by the import of ${loading}.\n`);
  };
  process.once("exit", nameIt);
  try {
    const importNext = async (url: string): Promise<unknown> => {
      loading = shownPath(fileURLToPath(url));
      return importFile(url);
    };
    return await loadHandlers({ importFile: importNext }, await handlerFolders(config));
  } finally {
    loading = null;
    process.removeListener("exit", nameIt);
  }
}

/** TypeScript from elsewhere is read even if this program runs as JavaScript. */
async function importFile(url: string): Promise<unknown> {
  if (url.startsWith(ownHandlers.href) || !/\.m?ts$/.test(url)) return import(url);
  const { tsImport } = await import("tsx/esm/api");
  return tsImport(url, { parentURL: import.meta.url, tsconfig: false });
}

/** The process that runs the handlers of `superviseOwnHandlers`, until that stops it. */
export async function hostOwnHandlers(
  withRuntime: <T>(run: (runtime: Runtime) => Promise<T>, databaseUrl: string) => Promise<T>,
): Promise<void> {
  const channel = openHostChannel();
  const { databaseUrl, files, service, now } = await channel.start;
  try {
    await withRuntime(async (runtime) => {
      const { log, wallClock: clock } = runtime;
      await runTracing(runtime);
      await runHost({
        log,
        channel,
        warnRateLimited: createRateLimitedWarnings({ log, clock }),
        load: (onFile) => {
          const importNext = (url: string): Promise<unknown> => {
            onFile(fileURLToPath(url));
            return importFile(url);
          };
          return loadFiles({ importFile: importNext }, files);
        },
        run: (handlers, onBegin) => startHandlers(runtime, handlers, { service, now, onBegin }),
      });
    }, databaseUrl);
  } finally {
    channel.release();
  }
}

async function startHandlers(
  runtime: Runtime,
  handlers: readonly Handler[],
  { service, now, onBegin }: Pick<HostStart, "service" | "now"> & Required<Pick<DispatchDeps, "onBegin">>,
): Promise<RunningDispatch> {
  const { log, random, wallClock: clock } = runtime;
  const db = await openPool(runtime, pools.engine);
  const work = handlerWork({
    ...(await attemptDeps(runtime, handlers, service ?? undefined)),
    db,
  });
  const dispatch = startDispatch({ db, log, clock, random, now, onBegin }, handlers, work);
  log.info({ handlers: handlers.map(({ name }) => name) }, "handlers run");
  return dispatch;
}

/** The dependencies of handlers. */
export async function attemptDeps(
  runtime: Runtime,
  handlers: readonly Handler[],
  service?: ServiceLocation,
): Promise<AttemptDeps> {
  const inTransactions = handlers
    .filter(({ transactional }) => transactional)
    .reduce((sum, { concurrency }) => sum + concurrency, 0);
  const most = Math.min(pools.mostHandlers, pools.handlers + inTransactions);
  return {
    handlersDb: await openPool(runtime, most),
    client: runtime.serviceClient(service),
    log: runtime.log,
  };
}

async function openPool(runtime: Runtime, poolMax: number) {
  const { log, secrets } = runtime;
  const db = createDatabase({
    url: await runtime.databaseUrl(),
    pooling: secrets.databaseDirectUrl === null ? undefined : "transaction",
    poolMax,
    applicationName: "tallyhook handlers",
    log,
  });
  runtime.onClose(() => db.destroy());
  return db;
}

/** Handlers run on changes, each with the object as the change left it. @param deps `db` reads the objects */
export const handlerWork = (deps: AttemptDeps & { db: Knex }): Work<Handler> => ({
  sourceOf: ({ name, on, includeImport }) => feedSource({ name, kinds: on, includeImport }),
  async prepare(claimed) {
    const changes = claimed.map(({ run }) => changeOf(run));
    const objects = await readObjects(deps.db, changes);
    return claimed.map(({ recipient, run }, n) => ({
      removesRun: recipient.transactional,
      eventSeq: eventSeqOf(run),
      make(removeRun) {
        const change = changeOf(run);
        const idempotencyKey = idempotencyKeyOf(recipient.name, change);
        const attempt = { change, object: objects[n] ?? null, idempotencyKey, isTest: false };
        return attemptRun(deps, recipient, attempt, removeRun);
      },
    }));
  },
});
