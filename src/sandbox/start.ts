import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import type { Clock } from "../platform/clock.ts";
import { wallClock as machineClock } from "../platform/clock.ts";
import { UnreachableError } from "../platform/errors.ts";
import type { Log } from "../platform/log.ts";
import { createControlRouter } from "./controls/router.ts";
import { createTransport } from "./delivery/transport.ts";
import { createApp } from "./http/app.ts";
import { createApiRouter } from "./http/mount.ts";
import { allEndpoints } from "./resources/all.ts";
import type { State } from "./state.ts";
import { createState } from "./state.ts";

/** Longer than clients keep idle connections, so that none is closed under a request. */
const keepAliveMs = 65_000;

export interface SandboxOptions {
  /** 0 picks a free one. */
  port: number;
  host?: string;
  /** The same seed and the same calls give the same ids, amounts and events. */
  seed?: number | string;
  log: Log;
  wallClock?: Clock;
}

export interface RunningSandbox {
  /** Without `/v1`: what `SVC_BASE_URL` would be. */
  url: string;
  port: number;
  close(): Promise<void>;
}

/** Starts the stand-in of the service, in memory. Throws `UnreachableError` when the port cannot be had. */
export async function startSandbox(options: SandboxOptions): Promise<RunningSandbox> {
  const { port, host = "127.0.0.1", seed = "tallyhook", log, wallClock = machineClock } = options;
  const transport = createTransport();
  const deps = { wallClock, log, transport };
  let state: State = createState(deps, String(seed));

  const app = createApp({
    log,
    state: () => state,
    api: createApiRouter(() => state, allEndpoints),
    controls: createControlRouter({
      log,
      state: () => state,
      reset(newSeed) {
        state.close();
        state = createState(deps, newSeed ?? state.seed);
      },
    }),
  });
  const handle = app.callback();
  const server = createServer((request, response) => void handle(request, response));
  server.keepAliveTimeout = keepAliveMs;
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) => {
      const message = `The sandbox cannot listen on ${host}:${port} (SANDBOX_PORT). Choose another port; 0 picks a free one.`;
      reject(new UnreachableError(message, { cause }));
    });
    server.listen(port, host, resolve);
  });
  const address = server.address() as AddressInfo;
  const shownHost = address.family === "IPv6" ? `[${host}]` : host;
  return {
    url: `http://${shownHost}:${address.port}`,
    port: address.port,
    async close() {
      state.close();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
      await transport.close();
    },
  };
}
