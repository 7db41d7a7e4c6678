import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { InboxUnavailable } from "../inbox/flush.ts";
import type { Appender } from "../inbox/append.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { EnvelopePlaces } from "../service/event-envelope.ts";
import { isLive } from "../service/signature/match-secret.ts";
import type { SignatureScheme, SigningSecret, Verification } from "../service/signature/scheme.ts";
import { refusals, sendJson, sendRefusal } from "./answers.ts";
import { addressGroup } from "./admission.ts";
import { createByteRoom, createPlaces } from "./byte-room.ts";
import type { ReceiverCounters } from "./counters.ts";
import type { Deadlines } from "./deadlines.ts";
import type { ReceiverLimits } from "./limits.ts";
import { extractEvent } from "./extract-event.ts";
import { readBody } from "./read-body.ts";
import {
  noteIncomplete,
  refuseForRoom,
  refuseSignature,
  refuseUnavailable,
  refuseUnproved,
  refuseUnread,
} from "./refuse-webhook.ts";
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
  /** Of all requests under way together. */
  maxHeldBodyBytes: number;
  toleranceSeconds: number;
  places: Readonly<EnvelopePlaces>;
  limits: Pick<ReceiverLimits, "waitingForSecrets" | "waitingPerAddress">;
}

/** What a request costs beside its body while it waits for the secrets to be read again. */
const requestOverheadBytes = 4_096;

/** Answers one request itself, on time, whatever it holds. Never rejects. */
export type ReceiveWebhook = (req: IncomingMessage, res: ServerResponse) => Promise<void>;

/**
 * `POST /webhooks`: the bytes as they came, the signature over them, the inbox, and only then 200. What an
 * authentic body holds never leads to a refusal.
 */
export function createReceiveWebhook(deps: WebhookDeps, options: WebhookOptions): ReceiveWebhook {
  const { appender, secrets, scheme, clock, log, counters, deadlines } = deps;
  const { maxBodyBytes, maxHeldBodyBytes, toleranceSeconds, places, limits } = options;
  const isVerbose = log.isLevelEnabled("debug");
  const bodies = createByteRoom(maxHeldBodyBytes);
  // What waits for a secret is most likely nobody's event: it leaves room for those that verify.
  const unproved = createByteRoom(maxHeldBodyBytes / 2);
  // Forging costs nothing: those past a few are told at once to come again, by when the secrets have been read.
  const waiting = createPlaces({
    max: limits.waitingForSecrets,
    maxPerAddress: limits.waitingPerAddress,
  });

  async function receive(req: IncomingMessage, res: ServerResponse): Promise<void> {
    if (!isPlainBody(req.headers)) return refuseUnread(deps, req, res, "content_encoding");
    const length = Number(req.headers["content-length"]);
    if (length > maxBodyBytes) return refuseUnread(deps, req, res, "too_large");
    if (length > bodies.free()) return refuseForRoom(deps, req, res);
    // Only now is a sender who asks first told to send the body.
    if (req.headers.expect !== undefined && req.httpVersion === "1.1") res.writeContinue();

    const raw = await readBody(req, { limit: maxBodyBytes, room: bodies });
    if (raw === "too_large") return refuseUnread(deps, req, res, raw);
    if (raw === "no_room") return refuseForRoom(deps, req, res);
    if (raw === "incomplete") return noteIncomplete(deps, req, res);
    try {
      await verifyAndStore(req, res, raw);
    } finally {
      bodies.give(raw.length);
    }
  }

  async function verifyAndStore(
    req: IncomingMessage,
    res: ServerResponse,
    raw: Buffer,
  ): Promise<void> {
    const tried = liveSecrets();
    let verification = verify(req, raw, tried);
    if (isMaybeRotated(verification)) {
      const isCertain = await refreshSecrets(addressGroup(req.socket.remoteAddress), raw.length);
      // Whoever forges must not make a secret go over the body twice.
      const fresh = liveSecrets().filter((secret) => !tried.includes(secret));
      if (fresh.length > 0) verification = verify(req, raw, fresh);
      // A 401 would say that the sender is wrong, and nobody can know that now.
      if (!isCertain && isMaybeRotated(verification)) {
        return refuseUnproved(deps, res);
      }
    }
    if (!verification.ok) return refuseSignature(deps, res, verification);
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

  function liveSecrets(): readonly SigningSecret[] {
    const now = clock.now();
    return secrets.current().filter((secret) => isLive(secret, now));
  }

  function verify(
    { rawHeaders }: IncomingMessage,
    body: Buffer,
    live: readonly SigningSecret[],
  ): Verification {
    return scheme.verify({ rawHeaders, body, secrets: live, now: clock.now(), toleranceSeconds });
  }

  /** False as `refresh` has it, and at once when too many wait for the same. */
  async function refreshSecrets(address: string, bodyBytes: number): Promise<boolean> {
    const cost = bodyBytes + requestOverheadBytes;
    if (!waiting.take(address)) return false;
    const hasRoom = unproved.take(cost);
    try {
      return hasRoom && (await secrets.refresh());
    } finally {
      if (hasRoom) unproved.give(cost);
      waiting.give(address);
    }
  }

  return async (req, res) => {
    counters.inFlight += 1;
    const ticket = deadlines.enter(res);
    try {
      await receive(req, res);
    } catch (error) {
      if (error instanceof InboxUnavailable) {
        refuseUnavailable(deps, res, error.message);
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
function isMaybeRotated(verification: Verification): boolean {
  if (verification.ok) return false;
  return verification.reason === "no_match" || verification.reason === "no_secret";
}

/** A packed body would be another sequence of bytes than the one that was signed, or a bomb. */
function isPlainBody(headers: IncomingHttpHeaders): boolean {
  const encoding = headers["content-encoding"];
  return encoding === undefined || encoding === "" || encoding.toLowerCase() === "identity";
}
