import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { limitConnections } from "./admission.ts";
import { refusals } from "./answers.ts";
import {
  answerHalfClosed,
  noteRequest,
  refuseConnection,
  refuseRequest,
  refuseTunnel,
} from "./connections.ts";
import type { ReceiverCounters } from "./counters.ts";
import type { ReceiverLimits } from "./limits.ts";
import type { WarnSeldom } from "./seldom-warnings.ts";

interface HttpServerDeps {
  counters: ReceiverCounters;
  warnSeldom: WarnSeldom;
  /** Answers what is a whole and proper request. */
  handle(req: IncomingMessage, res: ServerResponse): void;
  /** See `AdmissionOptions`. */
  slowest(): Socket | null;
}

interface HttpServerOptions {
  limits: ReceiverLimits;
  maxConnections: number;
}

/**
 * A server that holds nobody's connection for ever, and that counts and answers itself whatever is no request for
 * `handle`. It does not listen yet.
 */
export function createHttpServer(
  { counters, warnSeldom, handle, slowest }: HttpServerDeps,
  { limits, maxConnections }: HttpServerOptions,
): Server {
  const handleProper = (req: IncomingMessage, res: ServerResponse): void => {
    noteRequest(res);
    admission.noteRequest(req.socket);
    const hasHost = req.headers.host !== undefined || req.httpVersion !== "1.1";
    if (!hasHost || !isTarget(req.url ?? "")) {
      refuseRequest(counters, res, refusals.malformed);
      return;
    }
    handle(req, res);
  };
  const server = createServer(
    {
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: limits.tickMs,
      // Looked at in `handleProper`: Node's own answer has another form, and nobody would count it.
      requireHostHeader: false,
    },
    handleProper,
  );
  // A sender that asks before it sends the body is answered by the same code, which invites it or refuses.
  server.on("checkContinue", handleProper);
  server.on("checkExpectation", (_req, res) => {
    noteRequest(res);
    refuseRequest(counters, res, refusals.expectation);
  });
  server.on("connect", (_req, socket) => refuseTunnel(counters, socket));
  // Who neither sends nor reads what was answered holds no connection for ever.
  server.timeout = limits.requestMs + limits.answerMs;
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    refuseConnection(counters, error, socket);
  });
  server.maxRequestsPerSocket = limits.requestsPerConnection;
  answerHalfClosed(server);
  const admission = limitConnections(server, {
    max: maxConnections,
    maxSilentPerAddress: limits.silentPerAddress,
    slowest,
    onRefused() {
      counters.connectionsRefused += 1;
      warnSeldom("a connection was closed unanswered: there are too many", { max: maxConnections });
    },
  });
  return server;
}

/** A path, or in the absolute form an address that is one: Koa would fail on another, and answer 500. */
const isTarget = (target: string): boolean =>
  target.startsWith("/") || URL.canParse(target, "http://x");
