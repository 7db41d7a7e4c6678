import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type Clock, wallClock as machineClock } from "../../platform/clock.ts";
import { listen, localAddress } from "../../platform/http/listen.ts";
import type { Log } from "../../platform/log.ts";
import { createControlRouter } from "./controls/control-router.ts";
import { assertStatePlace, holdStateFile, keepStateFile, readStateFile } from "./engine/state-file.ts";
import { type StateDump, restoreState } from "./engine/state-dump.ts";
import { createTransport } from "./engine/delivery/attempt.ts";
import { createApp } from "./http/app.ts";
import { createCdnRouter } from "./resources/products/product-images.ts";
import { createDocsRouter } from "./docs/docs-router.ts";
import { createGatewayRouter } from "./resources/payment-methods/card-gateway.ts";
import { createApiRouter } from "./http/mount.ts";
import { ownHosts } from "./http/own-site.ts";
import { allEndpoints } from "./resources/all-endpoints.ts";
import { captureEndpoint } from "./resources/payment-methods/payment-method-routes.ts";
import { type State, createState } from "./engine/state.ts";

/** Longer than clients keep idle connections, so that a connection is never closed under a request. */
const keepAliveMs = 65_000;

export interface SandboxOptions {
  /** 0 picks a free port. */
  port: number;
  host?: string;
  /** Host names that the sandbox answers to in addition to loopback and `host`. */
  allowHosts?: readonly string[];
  /** The same seed and the same calls give the same ids, amounts and events. */
  seed?: number | string;
  log: Log;
  wallClock?: Clock;
  /** The file that keeps the state across restarts. Without it, the state is lost. */
  stateFile?: string;
}

export interface RunningSandbox {
  /** Without `/v1`: the value for `SVC_BASE_URL`. */
  url: string;
  port: number;
  close(): Promise<void>;
}

/**
 * Starts the local stand-in for the service. It works in memory; `stateFile` keeps its state. Throws
 * `ConfigurationError` when the port is not available.
 */
export async function startSandbox(options: SandboxOptions): Promise<RunningSandbox> {
  const { port, host = "127.0.0.1", seed = "tallyhook", log, wallClock = machineClock } = options;
  const { allowHosts = [] } = options;
  const transport = createTransport();
  let origin = "";
  const deps = { wallClock, log, transport, origin: () => origin };
  let state: State = createState(deps, String(seed));

  function replaceBy(dump: StateDump): void {
    const restored = createState(deps, dump.seed);
    try {
      restoreState(restored, dump);
    } catch (error) {
      // A half-restored state must not bill or deliver.
      restored.close();
      throw error;
    }
    state.close();
    state = restored;
  }

  async function stop(): Promise<void> {
    state.close();
    await transport.close();
    await release?.();
  }

  const { stateFile } = options;
  const release = stateFile === undefined ? null : await holdStateFile(stateFile);
  try {
    if (stateFile !== undefined) {
      await assertStatePlace(stateFile);
      let stoppedForMs = 0;
      await readStateFile(stateFile, (kept) => {
        replaceBy(kept);
        stoppedForMs = timeStopped(kept, wallClock);
      });
      await state.time.catchUp(stoppedForMs);
    }
  } catch (error) {
    await stop();
    throw error;
  }

  const app = createApp({
    log,
    isOwnHost: ownHosts(host, allowHosts),
    state: () => state,
    api: createApiRouter(() => state, allEndpoints),
    beside: [
      createApiRouter(() => state, [captureEndpoint], ""),
      createGatewayRouter(() => state),
      createCdnRouter(() => state),
      createDocsRouter(allEndpoints, log),
    ],
    controls: createControlRouter({
      log,
      wallClock,
      state: () => state,
      reset(newSeed) {
        state.close();
        state = createState(deps, newSeed ?? state.seed);
      },
      restore(dump) {
        replaceBy(dump);
      },
    }),
  });
  const handle = app.callback();
  const server = createServer((request, response) => void handle(request, response));
  server.keepAliveTimeout = keepAliveMs;
  const where = { host, port, hostVariable: "--host", portVariable: "SANDBOX_PORT" };
  await listen(server, where).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  const address = server.address() as AddressInfo;
  origin = `http://${localAddress(host)}:${address.port}`;
  const file = stateFile === undefined ? null : keepStateFile({ path: stateFile, log, wallClock, state: () => state });
  return {
    url: origin,
    port: address.port,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
      // Last, so that every answered request is in the file.
      try {
        await file?.close();
      } finally {
        await stop();
      }
    },
  };
}

/** How long the sandbox was stopped. A running clock catches up by this time; a manual clock has not moved: 0. */
function timeStopped({ clock }: StateDump, wallClock: Clock): number {
  if (clock.mode === "manual") return 0;
  return Math.max(0, wallClock.now().getTime() - clock.wall_ms);
}
