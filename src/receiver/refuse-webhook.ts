import type { IncomingMessage, ServerResponse } from "node:http";
import { errorCode } from "../platform/postgres-errors.ts";
import type { Verification } from "../service/signature/scheme.ts";
import { refusals, sendRefusal } from "./answers.ts";
import { requestTimeoutCode } from "./connections.ts";
import type { ReceiverCounters } from "./counters.ts";
import type { WarnSeldom } from "./seldom-warnings.ts";

export interface RefusalDeps {
  counters: ReceiverCounters;
  warnSeldom: WarnSeldom;
}

/** Refuses for its form what nobody needs to read. */
export function refuseUnread(
  { counters, warnSeldom }: RefusalDeps,
  req: IncomingMessage,
  res: ServerResponse,
  reason: "too_large" | "content_encoding",
): void {
  counters.rejected[reason] += 1;
  const refusal = reason === "too_large" ? refusals.tooLarge : refusals.contentEncoding;
  const requestId = sendRefusal(res, refusal);
  warnSeldom("a webhook was refused unread", { reason, requestId });
  discardRest(req);
}

/** Tells the sender to come again, since too many bodies are under way; nothing more is read. */
export function refuseForRoom(deps: RefusalDeps, req: IncomingMessage, res: ServerResponse): void {
  refuseUnavailable(deps, res, "The bodies under way leave no room for another.");
  discardRest(req);
}

/**
 * Closing at once would reset the connection under a sender that is still writing, and lose the answer. What still
 * comes is thrown away; the server's time limit for a request ends it.
 */
function discardRest(req: IncomingMessage): void {
  req.resume();
}

/** Nor does its sender keep the connection: those that prove nothing would fill it up for those that can. */
export function refuseSignature(
  { counters, warnSeldom }: RefusalDeps,
  res: ServerResponse,
  { reason, secretId }: Extract<Verification, { ok: false }>,
): void {
  if (res.headersSent) return;
  counters.rejected[reason] += 1;
  const requestId = sendRefusal(res, refusals.signature, lastAnswer);
  if (reason === "stale") {
    warnSeldom("signature_stale: a right signature with a time outside the window", {
      requestId,
      secretId,
    });
  } else {
    warnSeldom("a signature did not verify", { reason, requestId });
  }
}

const lastAnswer = { Connection: "close" };

/** Tells a sender to come again whose signature may be right: the secrets could not be read again in time. */
export function refuseUnproved(deps: RefusalDeps, res: ServerResponse): void {
  const reason = "The signing secrets could not be read again in time.";
  refuseUnavailable(deps, res, reason, lastAnswer);
}

/** Tells the sender to come again, unless that was said before. */
export function refuseUnavailable(
  { counters, warnSeldom }: RefusalDeps,
  res: ServerResponse,
  reason: string,
  headers?: Readonly<Record<string, string>>,
): void {
  if (res.headersSent) return;
  counters.unavailable += 1;
  const requestId = sendRefusal(res, refusals.unavailable, headers);
  warnSeldom("a webhook could not be stored and will come again", { requestId, reason });
}

/** What a request gets whose deadline has passed. */
export function refuseLate(deps: RefusalDeps, res: ServerResponse): void {
  if (res.req.complete) {
    refuseUnavailable(deps, res, "The inbox did not answer in time.");
    return;
  }
  // The server's own time limit is shorter, but does not run any more once it is closing.
  if (res.headersSent) return;
  deps.counters.rejected.slow += 1;
  res.once("finish", () => res.req.destroy());
  sendRefusal(res, refusals.slow, { Connection: "close" });
}

/** A sender that broke off hears nothing; who was too slow was told so, and counted, by the server. */
export function noteIncomplete(
  { counters }: RefusalDeps,
  req: IncomingMessage,
  res: ServerResponse,
): void {
  const { errored } = req.socket;
  const isTooSlow = errored !== null && errorCode(errored) === requestTimeoutCode;
  if (!isTooSlow && !res.headersSent) counters.rejected.aborted += 1;
}
