import { createHash, timingSafeEqual } from "node:crypto";
import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Log } from "../log.ts";
import { lingerAfterAnswers } from "./linger.ts";
import { isLoopbackHost, listen, localAddress } from "./listen.ts";

export interface AdminServer {
  url: string;
  close(): Promise<void>;
}

export interface AdminServerParts {
  log: Log;
  /** Whether a supervisor may leave the process running. */
  isAlive(): boolean;
  metrics: { contentType: string; text(): Promise<string> };
  /** Its holder may read the metrics from anywhere; null: only this machine may. */
  metricsToken: string | null;
}

/**
 * `GET /healthz` (200 while `isAlive`, else 503, so that a supervisor can restart the process) and `GET /metrics` on the
 * admin address. It echoes nothing of a request. Throws `ConfigurationError` when it cannot listen.
 */
export async function startAdminServer(
  parts: AdminServerParts,
  { host, port }: { host: string; port: number },
): Promise<AdminServer> {
  // By default Node checks for late connections only every half minute: in that time, idle ones could take every place.
  const server = createServer({ connectionsCheckingInterval: 1_000 }, (req, res) => answer(parts, req, res));
  server.headersTimeout = 5_000;
  server.requestTimeout = 5_000;
  // Of a client that sends, and does not read its answers.
  server.timeout = 10_000;
  // Scrapers are few. More would wait for the same readings.
  server.maxConnections = 64;
  lingerAfterAnswers(server);
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

function answer(parts: AdminServerParts, req: IncomingMessage, res: ServerResponse): void {
  const [path] = (req.url ?? "").split("?", 1);
  if (path !== "/healthz" && path !== "/metrics") {
    send(res, 404, "not found", "There are /healthz and /metrics.");
  } else if (req.method !== "GET" && req.method !== "HEAD") {
    res.setHeader("allow", "GET, HEAD");
    send(res, 405, "method not allowed", "Use GET.");
  } else if (path === "/healthz") {
    const alive = parts.isAlive();
    res.statusCode = alive ? 200 : 503;
    res.setHeader("content-type", "application/json");
    res.end(`{"status":"${alive ? "ok" : "stalled"}"}\n`);
  } else {
    void sendMetrics(parts, req, res);
  }
}

async function sendMetrics(
  { log, metrics, metricsToken }: AdminServerParts,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  if (metricsToken === null && !isFromThisMachine(req)) {
    return send(res, 403, "forbidden", "Set METRICS_TOKEN, and send it as a bearer token.");
  }
  if (metricsToken !== null && !hasToken(req, metricsToken)) {
    res.setHeader("www-authenticate", 'Bearer realm="metrics"');
    return send(res, 401, "unauthorized", "Send METRICS_TOKEN as a bearer token.");
  }
  try {
    const text = await metrics.text();
    res.setHeader("content-type", metrics.contentType);
    res.setHeader("cache-control", "no-store");
    res.end(text);
  } catch (err) {
    log.error({ err }, "the metrics could not be written");
    send(res, 500, "failed", "The metrics could not be written.");
  }
}

/** Requests that a proxy forwards, or a browser's page under another name sends, come from loopback as well. */
function isFromThisMachine({ socket, headers }: IncomingMessage): boolean {
  const isForwarded = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"].some(
    (name) => headers[name] !== undefined,
  );
  const peer = (socket.remoteAddress ?? "").replace(/^::ffff:/, "");
  const isLoopback = peer === "::1" || /^127(\.\d+){3}$/.test(peer);
  const named = (headers.host ?? "").toLowerCase().replace(/:\d+$/, "");
  return isLoopback && !isForwarded && isLoopbackHost(named);
}

/** Compares hashes, so that the time reveals nothing about the token or its length. */
function hasToken({ headers }: IncomingMessage, token: string): boolean {
  const [, given] = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? "") ?? [];
  return given !== undefined && timingSafeEqual(hashOf(given), hashOf(token));
}

const hashOf = (text: string): Buffer => createHash("sha256").update(text).digest();

function send(res: ServerResponse, status: number, name: string, message: string): void {
  res.statusCode = status;
  res.setHeader("content-type", "application/json");
  res.end(`${JSON.stringify({ status: name, message })}\n`);
}
