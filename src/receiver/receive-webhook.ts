import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import getRawBody from "raw-body";
import { InboxUnavailable } from "../inbox/flush.ts";
import type { Appender } from "../inbox/append.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import { errorCode } from "../platform/postgres-errors.ts";
import type { EnvelopePlaces } from "../service/event-envelope.ts";
import type { SignatureScheme, Verification } from "../service/signature/scheme.ts";
import { requestTimeoutCode } from "./connections.ts";
import { refusals, sendJson, sendRefusal } from "./answers.ts";
import type { ReceiverCounters } from "./counters.ts";
import type { Deadlines } from "./deadlines.ts";
import { extractEvent } from "./extract-event.ts";
import type { WarnSeldom } from "./seldom-warnings.ts";
import type { LiveSecrets } from "./secrets.ts";

export interface WebhookDeps {
  appender: Pick<Appender, "append">;
  secrets: Pick<LiveSecrets, "current" | "refresh" | "markUsed">;
  scheme: SignatureScheme;
  clock: Clock;
  log: Log;
  warnSeldom: WarnSeldom;
  counters: ReceiverCounters;
  deadlines: Deadlines<ServerResponse>;
}

export interface WebhookOptions {
  maxBodyBytes: number;
  toleranceSeconds: number;
  places: Readonly<EnvelopePlaces>;
}

/** Answers one request itself, on time, whatever it holds. Never rejects. */
export type ReceiveWebhook = (req: IncomingMessage, res: ServerResponse) => Promise<void>;

/**
 * `POST /webhooks`: the bytes as they came, the signature over them, the inbox, and only then 200. What an
 * authentic body holds never leads to a refusal.
 */
export function createReceiveWebhook(deps: WebhookDeps, options: WebhookOptions): ReceiveWebhook {
  const { appender, secrets, log, warnSeldom, counters, deadlines } = deps;
  const { maxBodyBytes, places } = options;
  const isVerbose = log.isLevelEnabled("debug");

  async function receive(req: IncomingMessage, res: ServerResponse): Promise<void> {
    if (!isPlainBody(req.headers)) return refuse(req, res, "content_encoding");
    if (Number(req.headers["content-length"]) > maxBodyBytes) return refuse(req, res, "too_large");
    // Only now is a sender who asks first told to send the body.
    if (req.headers.expect !== undefined && req.httpVersion === "1.1") res.writeContinue();

    let raw: Buffer;
    try {
      raw = await getRawBody(req, { limit: maxBodyBytes });
    } catch (error) {
      return (error as getRawBody.RawBodyError).type === "entity.too.large"
        ? refuse(req, res, "too_large")
        : noteIncomplete(req, res);
    }

    let verification = verify(deps, options, req, raw);
    if (!verification.ok && maybeRotated.has(verification.reason)) {
      await secrets.refresh();
      verification = verify(deps, options, req, raw);
    }
    if (!verification.ok) return refuseSignature(res, verification);
    const { secretId } = verification;
    secrets.markUsed(secretId);

    const { eventId, type, apiVersion, createdAt } = extractEvent(places, raw);
    const event = { raw, secretId, eventId, type, apiVersion, createdAt };
    const appended = await appender.append(event);
    // The deadline may have passed meanwhile: then the event is stored, and comes again as a repeat.
    if (res.headersSent) return;
    const { duplicate } = appended;
    counters[duplicate ? "duplicate" : "accepted"] += 1;
    sendJson(
      res,
      200,
      `{"received":true,"id":${JSON.stringify(appended.eventId)},"duplicate":${duplicate}}`,
    );
    if (isVerbose) log.debug({ eventId, type, secretId, duplicate }, "an event was accepted");
  }

  function refuse(
    req: IncomingMessage,
    res: ServerResponse,
    reason: "too_large" | "content_encoding",
  ): void {
    counters.rejected[reason] += 1;
    const refusal = reason === "too_large" ? refusals.tooLarge : refusals.contentEncoding;
    const requestId = sendRefusal(res, refusal);
    warnSeldom("a webhook was refused unread", { reason, requestId });
    // Closing at once would reset the connection under a sender that is still writing, and lose the answer.
    // What still comes is thrown away; the server's time limit for a request ends it.
    req.resume();
  }

  function refuseSignature(res: ServerResponse, { reason, secretId }: FailedVerification): void {
    counters.rejected[reason] += 1;
    const requestId = sendRefusal(res, refusals.signature);
    if (reason === "stale") {
      warnSeldom("signature_stale: a right signature with a time outside the window", {
        requestId,
        secretId,
      });
    } else {
      warnSeldom("a signature did not verify", { reason, requestId });
    }
  }

  function noteIncomplete(req: IncomingMessage, res: ServerResponse): void {
    // Who was too slow was told so, and counted, by the server.
    const { errored } = req.socket;
    const isTooSlow = errored !== null && errorCode(errored) === requestTimeoutCode;
    if (!isTooSlow && !res.headersSent) counters.rejected.aborted += 1;
  }

  return async (req, res) => {
    counters.inFlight += 1;
    const ticket = deadlines.enter(res);
    try {
      await receive(req, res);
    } catch (error) {
      if (error instanceof InboxUnavailable) {
        refuseUnavailable({ counters, warnSeldom }, res, error);
      } else {
        counters.failed += 1;
        const requestId = sendRefusal(res, refusals.internal);
        log.error({ err: error, requestId }, "a webhook failed unexpectedly");
      }
    } finally {
      deadlines.leave(ticket);
      counters.inFlight -= 1;
    }
  };
}

/** Failures that a secret which was not known yet would explain. */
const maybeRotated: ReadonlySet<FailedVerification["reason"]> = new Set(["no_match", "no_secret"]);

type FailedVerification = Extract<Verification, { ok: false }>;

function verify(
  { scheme, secrets, clock }: WebhookDeps,
  { toleranceSeconds }: WebhookOptions,
  req: IncomingMessage,
  body: Buffer,
): Verification {
  return scheme.verify({
    rawHeaders: req.rawHeaders,
    body,
    secrets: secrets.current(),
    now: clock.now(),
    toleranceSeconds,
  });
}

/** A packed body would be another sequence of bytes than the one that was signed, or a bomb. */
function isPlainBody(headers: IncomingHttpHeaders): boolean {
  const encoding = headers["content-encoding"];
  return encoding === undefined || encoding === "" || encoding.toLowerCase() === "identity";
}

/** Tells the sender to come again, unless that was said before. */
function refuseUnavailable(
  { counters, warnSeldom }: Pick<WebhookDeps, "counters" | "warnSeldom">,
  res: ServerResponse,
  error: Error,
): void {
  if (res.headersSent) return;
  counters.unavailable += 1;
  const requestId = sendRefusal(res, refusals.unavailable);
  warnSeldom("a webhook could not be stored and will come again", {
    requestId,
    reason: error.message,
  });
}

/** What a request gets whose deadline has passed. */
export function refuseLate(
  deps: Pick<WebhookDeps, "counters" | "warnSeldom">,
  res: ServerResponse,
): void {
  if (res.req.complete) {
    refuseUnavailable(deps, res, new InboxUnavailable("The inbox did not answer in time."));
    return;
  }
  // The server's own time limit is shorter, but does not run any more once it is closing.
  if (res.headersSent) return;
  deps.counters.rejected.slow += 1;
  res.once("finish", () => res.req.destroy());
  sendRefusal(res, refusals.slow, { Connection: "close" });
}
