import { fileURLToPath } from "node:url";
import type { AttemptDeps } from "../dispatch/attempt.ts";
import type { Handler } from "../dispatch/define-handler.ts";
import { loadHandlers } from "../dispatch/load-handlers.ts";
import { type RunningDispatch, startDispatch } from "../dispatch/start-dispatch.ts";
import { exists } from "../platform/files.ts";
import { createDatabase } from "../platform/postgres/pool.ts";
import type { Config } from "./config/config.ts";
import type { Runtime } from "./runtime.ts";

/** Connections of a process: for the engine, and for handlers; transactional ones keep one each while they run. */
const pools = { engine: 2, handlers: 4, mostHandlers: 16 };

/** The merchant's own folder; compiled, a folder without handlers is not there. */
const ownFolder = new URL("../handlers/", import.meta.url);

/** Loads all handlers of this deployment. Throws `ConfigurationError` where one is not usable. */
export async function loadOwnHandlers({
  handlersDir,
}: Pick<Config, "handlersDir">): Promise<Handler[]> {
  const folders = [
    ...((await exists(fileURLToPath(ownFolder))) ? [fileURLToPath(ownFolder)] : []),
    ...(handlersDir === null ? [] : [handlersDir]),
  ];
  return loadHandlers({ importFile }, folders);
}

/** TypeScript from elsewhere is read whatever this program itself was started from. */
async function importFile(url: string): Promise<unknown> {
  if (url.startsWith(ownFolder.href) || !/\.m?ts$/.test(url)) return import(url);
  const { tsImport } = await import("tsx/esm/api");
  return tsImport(url, { parentURL: import.meta.url, tsconfig: false });
}

/**
 * Runs the merchant's handlers until the runtime ends, on connections of their own. Null where there are none. Throws
 * `ConfigurationError` where one is not usable.
 */
export async function runHandlers(
  runtime: Runtime,
  service?: { baseUrl: string; apiKey: string },
): Promise<{ handlers: Handler[]; dispatch: RunningDispatch } | null> {
  const handlers = await loadOwnHandlers(runtime.config);
  if (handlers.length === 0) return null;
  const { log, random } = runtime;
  const db = await openPool(runtime, pools.engine);
  const deps = { ...(await attemptDeps(runtime, handlers, service)), db, random };
  const dispatch = startDispatch(deps, handlers);
  runtime.onClose(() => dispatch.close());
  log.info({ handlers: handlers.map(({ name }) => name) }, "handlers run");
  return { handlers, dispatch };
}

/** What handlers are given. */
export async function attemptDeps(
  runtime: Runtime,
  handlers: readonly Handler[],
  service?: { baseUrl: string; apiKey: string },
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
