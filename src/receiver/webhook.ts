import { createHash } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Middleware } from "koa";
import getRawBody from "raw-body";
import { type EnvelopePlaces, parseEventBody, readEventParts } from "../contract/event-envelope.ts";
import {
  type SignatureScheme,
  type SigningSecret,
  type Verification,
  isLive,
} from "../contract/signature/verification.ts";
import {
  type Appended,
  type Appender,
  InboxUnavailable,
  type VerifiedEvent,
  maxExtractLength,
} from "../inbox/append.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import { errorCode } from "../platform/postgres/errors.ts";
import {
  type RefusalDeps,
  refuseForRoom,
  refuseSignature,
  refuseUnavailable,
  refuseUnproved,
  refuseUnread,
  refusals,
  sendJson,
  sendRefusal,
} from "./answers.ts";
import { addressGroup, requestTimeoutCode } from "./connections.ts";
import {
  type ByteBudget,
  type Deadlines,
  type ReceiverLimits,
  createByteBudget,
  createPlaces,
} from "./limits.ts";
import type { LiveSecrets } from "./live-secrets.ts";

/**
 * `POST /webhooks`: what a request must pass, from top to bottom, and the status it gets where it does not. What an
 * authentic body holds never leads to a refusal.
 *
 * Before it, connections.ts caps the connections and answers what is no proper request; behind it, `nothingThere`
 * answers what no route took.
 */
export function webhookSteps(deps: WebhookDeps, options: WebhookOptions): WebhookStep[] {
  const bodies = createByteBudget(options.maxHeldBodyBytes);
  return [
    answerAlways(deps), // in time, else 503, or 408 where the body is not all there; 500 for a fault of ours
    takePlainBytes(deps), // 415
    limitAnnouncedLength(deps, options), // 413
    findRoom(deps, bodies), // 503
    inviteBody, // 100
    readBody(deps, options, bodies), // 413, 503
    verifySignature(deps, options), // 401; 503 while the secrets cannot be read
    storeEvent(deps, options), // 503
    confirm(deps), // 200
  ];
}

export type WebhookStep = Middleware<WebhookState>;

/** What the steps hand on. Each field is there behind the step that is named. */
export interface WebhookState {
  /** `readBody`: the bytes as they came. */
  raw: Buffer;
  /** `verifySignature` */
  secretId: string;
  /** `storeEvent` */
  event: VerifiedEvent;
  /** `storeEvent` */
  appended: Appended;
}

export interface WebhookDeps extends RefusalDeps {
  appender: Pick<Appender, "append">;
  secrets: Pick<LiveSecrets, "current" | "refresh" | "markUsed">;
  scheme: SignatureScheme;
  clock: Clock;
  log: Log;
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

/**
 * The deadline answers from outside (`refuseLate`), so all steps write to the response itself, and Koa does not.
 * Closing waits for the requests that are counted here. One step and not three: each costs every event a promise.
 */
function answerAlways({ counters, deadlines, log }: WebhookDeps): WebhookStep {
  return async (ctx, next) => {
    ctx.respond = false;
    counters.inFlight += 1;
    const ticket = deadlines.enter(ctx.res);
    try {
      await next();
    } catch (error) {
      counters.failed += 1;
      const requestId = sendRefusal(ctx.res, refusals.internal);
      log.error({ err: error, requestId }, "a webhook failed unexpectedly");
    } finally {
      deadlines.leave(ticket);
      counters.inFlight -= 1;
    }
  };
}

/** A packed body would be another sequence of bytes than the one that was signed, or a bomb. */
function takePlainBytes(deps: WebhookDeps): WebhookStep {
  return ({ req, res }, next) =>
    isPlain(req.headers) ? next() : refuseUnread(deps, res, "content_encoding");
}

function isPlain({ "content-encoding": encoding }: IncomingHttpHeaders): boolean {
  return encoding === undefined || encoding === "" || encoding.toLowerCase() === "identity";
}

function limitAnnouncedLength(
  deps: WebhookDeps,
  { maxBodyBytes }: Pick<WebhookOptions, "maxBodyBytes">,
): WebhookStep {
  return ({ req, res }, next) =>
    announcedLength(req) > maxBodyBytes ? refuseUnread(deps, res, "too_large") : next();
}

/** Takes none of the room: announcing is free, and nobody should fill the room by it. */
function findRoom(deps: WebhookDeps, bodies: ByteBudget): WebhookStep {
  return ({ req, res }, next) =>
    announcedLength(req) > bodies.free() ? refuseForRoom(deps, res) : next();
}

/** Not a number, and so no more than anything, where nothing was announced. */
const announcedLength = ({ headers }: IncomingMessage): number => Number(headers["content-length"]);

/** Only now is a sender who asks first told to send the body. */
const inviteBody: WebhookStep = ({ req, res }, next) => {
  if (req.headers.expect !== undefined && req.httpVersion === "1.1") res.writeContinue();
  return next();
};

/** What a piece costs beside its bytes: without it a body in pieces of one byte would take a hundredfold. */
const pieceOverheadBytes = 256;

/** One for all requests: a stack trace for each would cost what reading does. */
const noRoom = new Error("The bodies under way leave no room for another piece.");

/**
 * Reads the body whole, up to its limit, in room that all bodies under way share. Takes what has come, piece by piece.
 * Where there is no room for a piece, the request is in error for raw-body, which lets go of those it has; the
 * connection stays for the answer. A body that was read keeps as many bytes of room as it has until it is answered.
 */
function readBody(
  deps: WebhookDeps,
  { maxBodyBytes }: Pick<WebhookOptions, "maxBodyBytes">,
  bodies: ByteBudget,
): WebhookStep {
  return async ({ req, res, state }, next) => {
    let taken = 0;
    const take = (piece: Buffer): void => {
      // raw-body has stopped at this piece: it is one too many.
      if (req.isPaused()) return;
      const cost = piece.length + pieceOverheadBytes;
      if (bodies.take(cost)) taken += cost;
      else req.emit("error", noRoom);
    };
    try {
      const reading = getRawBody(req, { limit: maxBodyBytes });
      // After raw-body's own listener, so that a piece too many is too large before it finds no room.
      req.on("data", take);
      const raw = await reading;
      bodies.give(taken - raw.length);
      taken = raw.length;
      state.raw = raw;
    } catch (error) {
      req.removeListener("data", take);
      bodies.give(taken);
      if (error === noRoom) return refuseForRoom(deps, res);
      if (isTooLarge(error)) return refuseUnread(deps, res, "too_large");
      return noteIncomplete(deps, res);
    }
    try {
      await next();
    } finally {
      bodies.give(taken);
    }
  };
}

const isTooLarge = (error: unknown): boolean =>
  error instanceof Error && "type" in error && error.type === "entity.too.large";

/** A sender that broke off hears nothing; who was too slow was told so, and counted, by the server. */
function noteIncomplete({ counters }: RefusalDeps, res: ServerResponse): void {
  const { errored } = res.req.socket;
  const isTooSlow = errored !== null && errorCode(errored) === requestTimeoutCode;
  if (!isTooSlow && !res.headersSent) counters.rejected.aborted += 1;
}

/** What a request costs beside its body while it waits for the secrets to be read again. */
const requestOverheadBytes = 4_096;

function verifySignature(deps: WebhookDeps, options: WebhookOptions): WebhookStep {
  const { secrets, scheme, clock } = deps;
  const { toleranceSeconds, maxHeldBodyBytes, limits } = options;
  // What waits for a secret is most likely nobody's event: it leaves room for those that verify.
  const unproved = createByteBudget(maxHeldBodyBytes / 2);
  // Forging costs nothing: those past a few are told at once to come again, by when the secrets have been read.
  const waiting = createPlaces({
    max: limits.waitingForSecrets,
    maxPerAddress: limits.waitingPerAddress,
  });

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

  /** A secret may have been added since the last look: what it would explain is tried again with what there is now. */
  async function verifyAgain(
    req: IncomingMessage,
    raw: Buffer,
    tried: readonly SigningSecret[],
    first: Verification,
  ): Promise<{ verification: Verification; isCertain: boolean }> {
    const isCertain = await refreshSecrets(addressGroup(req.socket.remoteAddress), raw.length);
    // Whoever forges must not make a secret go over the body twice.
    const fresh = liveSecrets().filter((secret) => !tried.includes(secret));
    return { verification: fresh.length > 0 ? verify(req, raw, fresh) : first, isCertain };
  }

  const conclude: (verification: Verification, ...step: Parameters<WebhookStep>) => unknown = (
    verification,
    { res, state },
    next,
  ) => {
    if (!verification.ok) return refuseSignature(deps, res, verification);
    secrets.markUsed(verification.secretId);
    state.secretId = verification.secretId;
    return next();
  };

  // Not async itself: what verifies at once, and so nearly all, waits for nothing here.
  return (ctx, next) => {
    const { req, res, state } = ctx;
    const tried = liveSecrets();
    const first = verify(req, state.raw, tried);
    if (!isMaybeRotated(first)) return conclude(first, ctx, next);
    return verifyAgain(req, state.raw, tried, first).then(({ verification, isCertain }) =>
      // A 401 would say that the sender is wrong, and nobody can know that now.
      !isCertain && isMaybeRotated(verification)
        ? refuseUnproved(deps, res)
        : conclude(verification, ctx, next),
    );
  };
}

/** Failures that a secret which was not known yet would explain. */
function isMaybeRotated(verification: Verification): boolean {
  if (verification.ok) return false;
  return verification.reason === "no_match" || verification.reason === "no_secret";
}

function storeEvent(deps: WebhookDeps, { places }: Pick<WebhookOptions, "places">): WebhookStep {
  const { appender } = deps;
  return async ({ res, state }, next) => {
    const { raw, secretId } = state;
    const { eventId, type, apiVersion, createdAt } = extractEvent(places, raw);
    state.event = { raw, secretId, eventId, type, apiVersion, createdAt };
    try {
      state.appended = await appender.append(state.event);
    } catch (error) {
      if (!(error instanceof InboxUnavailable)) throw error;
      return refuseUnavailable(deps, res, error.message);
    }
    await next();
  };
}

function confirm({ counters, log }: WebhookDeps): WebhookStep {
  const isVerbose = log.isLevelEnabled("debug");
  return ({ res, state }) => {
    // The deadline may have passed meanwhile: then the event is stored, and comes again as a repeat.
    if (res.headersSent) return;
    const { eventId, duplicate } = state.appended;
    counters[duplicate ? "duplicate" : "accepted"] += 1;
    const id = JSON.stringify(eventId);
    sendJson(res, 200, `{"received":true,"id":${id},"duplicate":${duplicate}}`);
    if (!isVerbose) return;
    const { type, secretId } = state.event;
    log.debug({ eventId, type, secretId, duplicate }, "an event was accepted");
  };
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
