import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { listen, localAddress } from "./listen.ts";

export interface HealthServer {
  url: string;
  close(): Promise<void>;
}

/**
 * `GET /healthz` of a process that has no public port, on the admin address: 200 while `isAlive`, else 503, so
 * that whoever watches over the process can start it anew. Throws `ConfigurationError` when it cannot listen.
 */
export async function startHealthServer(
  { isAlive }: { isAlive(): boolean },
  { host, port }: { host: string; port: number },
): Promise<HealthServer> {
  const server = createServer((req, res) => {
    const isKnown = req.url === "/healthz" && (req.method === "GET" || req.method === "HEAD");
    const alive = isAlive();
    res.statusCode = !isKnown ? 404 : alive ? 200 : 503;
    res.setHeader("content-type", "application/json");
    res.end(isKnown ? `{"status":"${alive ? "ok" : "stalled"}"}\n` : '{"status":"not found"}\n');
  });
  server.headersTimeout = 5_000;
  server.requestTimeout = 5_000;
  await listen(server, { host, port, hostVariable: "ADMIN_HOST", portVariable: "ADMIN_PORT" });
  const { port: chosen } = server.address() as AddressInfo;
  return {
    url: `http://${localAddress(host)}:${chosen}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
