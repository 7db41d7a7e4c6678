import { createHash } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { type EnvelopePlaces, parseEventBody, readEventParts } from "../contract/event-envelope.ts";
import {
  type SignatureScheme,
  type SigningSecret,
  type Verification,
  isLive,
} from "../contract/signature/verification.ts";
import {
  type Appender,
  InboxUnavailable,
  type VerifiedEvent,
  maxExtractLength,
} from "../inbox/append.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import { errorCode } from "../platform/postgres/errors.ts";
import type { WarnSeldom } from "../platform/rate-limited-warnings.ts";
import { refusals, sendJson, sendRefusal } from "./answers.ts";
import { addressGroup, requestTimeoutCode } from "./connections.ts";
import type { ReceiverCounters } from "./counters.ts";
import {
  type ByteRoom,
  type Deadlines,
  type ReceiverLimits,
  createByteRoom,
  createPlaces,
} from "./limits.ts";
import type { LiveSecrets } from "./live-secrets.ts";

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

/** What a piece costs beside its bytes: without it a body in pieces of one byte would take a hundredfold. */
const pieceOverheadBytes = 256;

/** `no_room`: what all bodies under way hold together is too much. `incomplete`: the sender broke off. */
export type UnreadBody = "too_large" | "no_room" | "incomplete";

/**
 * Reads a body whole, up to a limit, in room that all bodies share. Of a body that was read, as many bytes as it
 * has stay taken, and are the caller's to give back; of one that was not, none. Then the request flows on, and what
 * still comes is thrown away. Never rejects.
 *
 * Counts what has come, not what was announced: announcing is free, and nobody should fill the room by it.
 */
function readBody(
  req: IncomingMessage,
  { limit, room }: { limit: number; room: ByteRoom },
): Promise<Buffer | UnreadBody> {
  return new Promise((resolve) => {
    let pieces: Buffer[] = [];
    let length = 0;
    let taken = 0;

    if (req.closed) return resolve("incomplete");

    function onData(piece: Buffer): void {
      length += piece.length;
      if (length > limit) return fail("too_large");
      const cost = piece.length + pieceOverheadBytes;
      if (!room.take(cost)) return fail("no_room");
      taken += cost;
      pieces.push(piece);
    }

    function onEnd(): void {
      detach();
      const [first] = pieces;
      room.give(taken - length);
      resolve(pieces.length === 1 && first !== undefined ? first : Buffer.concat(pieces, length));
    }

    function onBroken(): void {
      fail("incomplete");
    }

    function fail(why: UnreadBody): void {
      detach();
      room.give(taken);
      pieces = [];
      req.resume();
      resolve(why);
    }

    function detach(): void {
      req.removeListener("data", onData);
      req.removeListener("end", onEnd);
      req.removeListener("close", onBroken);
    }

    req.on("data", onData);
    req.on("end", onEnd);
    // Comes after every error, and after "end" only when nobody waits any more.
    req.on("close", onBroken);
  });
}

export type EventExtracts = Pick<VerifiedEvent, "eventId" | "type" | "apiVersion" | "createdAt">;

/**
 * What the inbox keeps in columns of an event whose signature held. An authentic event is never refused for its
 * content: an id that no column should hold becomes `sha256:<hex of the id as UTF-8>`, no id at all (broken JSON,
 * another type, an empty text) `sha256:<hex of the body>`, and every other part that cannot be kept null. The
 * same bytes always give the same id. Never throws.
 */
export function extractEvent(places: Readonly<EnvelopePlaces>, raw: Buffer): EventExtracts {
  const { id, type, apiVersion, createdAt } = readEventParts(places, parseEventBody(raw));
  return {
    eventId: eventIdOf(id, raw),
    type: isColumnText(type) ? type : null,
    apiVersion: isColumnText(apiVersion) ? apiVersion : null,
    createdAt,
  };
}

function eventIdOf(id: string | null, raw: Buffer): string {
  if (isColumnText(id)) return id;
  const named = id === null || id === "" ? raw : Buffer.from(id, "utf8");
  return `sha256:${createHash("sha256").update(named).digest("hex")}`;
}

/** Text that PostgreSQL takes (no NUL, no lone surrogate) and an index entry has room for. */
function isColumnText(text: string | null): text is string {
  return (
    text !== null &&
    text.length > 0 &&
    text.length <= maxExtractLength &&
    !text.includes("\0") &&
    text.isWellFormed()
  );
}

export interface RefusalDeps {
  counters: ReceiverCounters;
  warnSeldom: WarnSeldom;
}

/** Refuses for its form what nobody needs to read. */
function refuseUnread(
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
function refuseForRoom(deps: RefusalDeps, req: IncomingMessage, res: ServerResponse): void {
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
function refuseSignature(
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
function refuseUnproved(deps: RefusalDeps, res: ServerResponse): void {
  const reason = "The signing secrets could not be read again in time.";
  refuseUnavailable(deps, res, reason, lastAnswer);
}

/** Tells the sender to come again, unless that was said before. */
function refuseUnavailable(
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
function noteIncomplete(
  { counters }: RefusalDeps,
  req: IncomingMessage,
  res: ServerResponse,
): void {
  const { errored } = req.socket;
  const isTooSlow = errored !== null && errorCode(errored) === requestTimeoutCode;
  if (!isTooSlow && !res.headersSent) counters.rejected.aborted += 1;
}
