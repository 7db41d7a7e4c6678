import { createHash } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Middleware } from "koa";
import getRawBody from "raw-body";
import { type EnvelopePaths, parseEventBody, readEventParts } from "../contract/event-envelope.ts";
import {
  type SignatureScheme,
  type SigningSecret,
  type Verification,
  isLive,
} from "../contract/signature/verification.ts";
import { type Appender, InboxUnavailable } from "../inbox/append.ts";
import { type AppendResult, type VerifiedEvent, maxExtractLength } from "../inbox/store-batch.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Log } from "../../platform/log.ts";
import { errorCode } from "../../platform/postgres/errors.ts";
import { isTracing } from "../../platform/tracing/tracing.ts";
import {
  type RefusalDeps,
  refuseOverBudget,
  refuseSignature,
  refuseUnavailable,
  refuseUnverified,
  refuseUnread,
  apiErrors,
  sendJson,
  sendApiError,
} from "./answers.ts";
import { addressGroup, requestTimeoutCode } from "./connections.ts";
import {
  type ByteBudget,
  type Deadlines,
  type ReceiverLimits,
  createByteBudget,
  createWaitingPlaces,
} from "./limits.ts";
import type { LiveSecrets } from "./live-secrets.ts";
import { withinWebhookSpan } from "./webhook-span.ts";

/**
 * `POST /webhooks`: the checks a request must pass, in order, each with the status that a failure gets. The content of
 * an authentic body never leads to a refusal.
 *
 * Before these steps, connections.ts caps the connections and answers malformed requests. After them, `nothingThere`
 * answers requests that no route matched.
 */
export function webhookSteps(deps: WebhookDeps, options: WebhookOptions): WebhookStep[] {
  const bodies = createByteBudget(options.maxHeldBodyBytes);
  return [
    answerAlways(deps), // in time, else 503, or 408 for an incomplete body; 500 for a fault of ours
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

/** State that the steps pass on. A field is set once the step named with it has run. */
export interface WebhookState {
  /** `answerAlways`, where spans are made */
  arrivedAt?: Date;
  /** `readBody`: the bytes as received. */
  raw: Buffer;
  /** `verifySignature` */
  secretId: string;
  /** `storeEvent` */
  event: VerifiedEvent;
  /** `storeEvent` */
  appended: AppendResult;
}

export interface WebhookDeps extends RefusalDeps {
  appender: Pick<Appender, "append">;
  secrets: Pick<LiveSecrets, "current" | "refresh" | "markUsed">;
  scheme: SignatureScheme;
  clock: Clock;
  log: Log;
  deadlines: Deadlines<ServerResponse>;
  /** Called for each answered webhook, with the time since its headers came. */
  onAnswered?: ((status: number, seconds: number) => void) | undefined;
}

export interface WebhookOptions {
  maxBodyBytes: number;
  /** Shared by all requests in progress. */
  maxHeldBodyBytes: number;
  toleranceSeconds: number;
  places: Readonly<EnvelopePaths>;
  limits: Pick<ReceiverLimits, "waitingForSecrets" | "waitingPerAddress">;
}

/**
 * The deadline answers from outside the steps (`refuseLate`). So every step writes to the response itself, not through
 * Koa. Closing waits for the requests counted here. This is one step and not three, because each step costs every event
 * a promise.
 */
function answerAlways({ counters, deadlines, clock, log, onAnswered }: WebhookDeps): WebhookStep {
  return async (ctx, next) => {
    ctx.respond = false;
    if (isTracing()) ctx.state.arrivedAt = clock.now();
    counters.inFlight += 1;
    const begunMs = performance.now();
    const ticket = deadlines.start(ctx.res);
    try {
      await next();
    } catch (error) {
      counters.failed += 1;
      const requestId = sendApiError(ctx.res, apiErrors.internal);
      log.error({ err: error, requestId }, "a webhook failed unexpectedly");
    } finally {
      deadlines.end(ticket);
      counters.inFlight -= 1;
      // A client that hung up gets no answer.
      if (ctx.res.headersSent) {
        onAnswered?.(ctx.res.statusCode, (performance.now() - begunMs) / 1_000);
      }
    }
  };
}

/** A compressed body is not the bytes that were signed, and may be a decompression bomb. */
function takePlainBytes(deps: WebhookDeps): WebhookStep {
  return ({ req, res }, next) => (isPlain(req.headers) ? next() : refuseUnread(deps, res, "content_encoding"));
}

function isPlain({ "content-encoding": encoding }: IncomingHttpHeaders): boolean {
  return encoding === undefined || encoding === "" || encoding.toLowerCase() === "identity";
}

function limitAnnouncedLength(deps: WebhookDeps, { maxBodyBytes }: Pick<WebhookOptions, "maxBodyBytes">): WebhookStep {
  return ({ req, res }, next) => (announcedLength(req) > maxBodyBytes ? refuseUnread(deps, res, "too_large") : next());
}

/** Reserves no bytes: announcing a length costs a sender nothing, so it must not use up the budget. */
function findRoom(deps: WebhookDeps, bodies: ByteBudget): WebhookStep {
  return ({ req, res }, next) => (announcedLength(req) > bodies.free() ? refuseOverBudget(deps, res) : next());
}

/** NaN when no length was announced; a comparison with it is always false. */
const announcedLength = ({ headers }: IncomingMessage): number => Number(headers["content-length"]);

/** Sends 100 Continue only now, to a sender that expects it before the body. */
const inviteBody: WebhookStep = ({ req, res }, next) => {
  if (req.headers.expect !== undefined && req.httpVersion === "1.1") res.writeContinue();
  return next();
};

/**
 * Overhead of a chunk in addition to its bytes. Without it, a body in one-byte chunks would use a hundred times its
 * share.
 */
const pieceOverheadBytes = 256;

/** Shared by all requests: a stack trace for each would cost as much as reading the body. */
const noRoom = new Error("The bodies in progress fill the byte budget.");

/**
 * Reads the whole body, up to its limit, within the byte budget that all bodies in progress share. Takes bytes from the
 * budget chunk by chunk. When a chunk does not fit, raw-body sees a request error and releases the chunks it holds; the
 * connection stays open for the answer. A body that was read keeps its bytes of the budget until the later steps have
 * finished, even if the deadline answered before that.
 */
function readBody(
  deps: WebhookDeps,
  { maxBodyBytes }: Pick<WebhookOptions, "maxBodyBytes">,
  bodies: ByteBudget,
): WebhookStep {
  return async ({ req, res, state }, next) => {
    let taken = 0;
    const take = (piece: Buffer): void => {
      // raw-body has stopped at this chunk: the body is over its limit.
      if (req.isPaused()) return;
      const cost = piece.length + pieceOverheadBytes;
      if (bodies.reserve(cost)) taken += cost;
      else req.emit("error", noRoom);
    };
    try {
      const reading = getRawBody(req, { limit: maxBodyBytes });
      // Runs after raw-body's own listener, so that an oversized body is refused as too large before the budget is
      // checked.
      req.on("data", take);
      const raw = await reading;
      bodies.release(taken - raw.length);
      taken = raw.length;
      state.raw = raw;
    } catch (error) {
      req.removeListener("data", take);
      bodies.release(taken);
      if (error === noRoom) return refuseOverBudget(deps, res);
      if (isTooLarge(error)) return refuseUnread(deps, res, "too_large");
      return noteIncomplete(deps, res);
    }
    try {
      await next();
    } finally {
      bodies.release(taken);
    }
  };
}

const isTooLarge = (error: unknown): boolean =>
  error instanceof Error && "type" in error && error.type === "entity.too.large";

/**
 * A sender that disconnected gets no answer. The server has already answered and counted a sender that was too slow.
 */
function noteIncomplete({ counters }: RefusalDeps, res: ServerResponse): void {
  const { errored } = res.req.socket;
  const isTooSlow = errored !== null && errorCode(errored) === requestTimeoutCode;
  if (!isTooSlow && !res.headersSent) counters.rejected.aborted += 1;
}

/** Memory of a request in addition to its body while it waits for the secrets to be read again. */
const requestOverheadBytes = 4_096;

function verifySignature(deps: WebhookDeps, options: WebhookOptions): WebhookStep {
  const { secrets, scheme, clock } = deps;
  const { toleranceSeconds, maxHeldBodyBytes, limits } = options;
  // Requests that wait for a secret are most likely forged. They may use only part of the budget, so verified events
  // keep room.
  const unproved = createByteBudget(maxHeldBodyBytes / 2);
  // Forging costs nothing. Beyond a small limit, such requests get an immediate 503. When an authentic sender retries,
  // the secrets will have been read again.
  const waiting = createWaitingPlaces({
    max: limits.waitingForSecrets,
    maxPerAddress: limits.waitingPerAddress,
  });

  function liveSecrets(): readonly SigningSecret[] {
    const now = clock.now();
    return secrets.current().filter((secret) => isLive(secret, now));
  }

  function verify({ rawHeaders }: IncomingMessage, body: Buffer, live: readonly SigningSecret[]): Verification {
    return scheme.verify({ rawHeaders, body, secrets: live, now: clock.now(), toleranceSeconds });
  }

  /**
   * Resolves with the result of `refresh`. False immediately when it must not wait: too many requests wait already, or
   * their bodies leave no room for this one.
   */
  async function refreshSecrets(address: string, bodyBytes: number): Promise<boolean> {
    const cost = bodyBytes + requestOverheadBytes;
    if (!waiting.reserve(address)) return false;
    const hasRoom = unproved.reserve(cost);
    try {
      return hasRoom && (await secrets.refresh());
    } finally {
      if (hasRoom) unproved.release(cost);
      waiting.release(address);
    }
  }

  /**
   * A secret may have been added since the last read. Reads the secrets again, and verifies with those that were not
   * tried yet; without any, the first result stands. `isCertain`: no stored secret can be missing.
   */
  async function verifyAgain(
    req: IncomingMessage,
    raw: Buffer,
    tried: readonly SigningSecret[],
    first: Verification,
  ): Promise<{ verification: Verification; isCertain: boolean }> {
    const isCertain = await refreshSecrets(addressGroup(req.socket.remoteAddress), raw.length);
    // A forged request must not cost a second pass over the body with the same secret.
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

  // Not async: nearly all requests verify on the first try and wait for nothing here.
  return (ctx, next) => {
    const { req, res, state } = ctx;
    const tried = liveSecrets();
    const first = verify(req, state.raw, tried);
    if (!mayBeUnknownSecret(first)) return conclude(first, ctx, next);
    return verifyAgain(req, state.raw, tried, first).then(({ verification, isCertain }) =>
      // Not 401: the secrets were not read again, so the signature may be valid.
      !isCertain && mayBeUnknownSecret(verification) ? refuseUnverified(deps, res) : conclude(verification, ctx, next),
    );
  };
}

/** Whether a secret that was not read yet would explain the failure. */
function mayBeUnknownSecret(verification: Verification): boolean {
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
      const { message } = error;
      const refuse = (): void => refuseUnavailable(deps, res, message);
      return isTracing() ? withinWebhookSpan(res, { state, fate: "refused" }, refuse) : refuse();
    }
    if (!isTracing()) return next();
    const fate = state.appended.duplicate ? "duplicate" : "stored";
    await withinWebhookSpan(res, { state, fate }, next);
  };
}

function confirm({ counters, log }: WebhookDeps): WebhookStep {
  const isVerbose = log.isLevelEnabled("debug");
  return ({ res, state }) => {
    // The deadline may already have answered 503. The event is stored anyway, and its retry will be a duplicate.
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
 * Extracts the columns of the inbox from an authentic event. An authentic event is never refused for its content. An id
 * that does not fit a column becomes `sha256:<hex of the id as UTF-8>`. A missing id (broken JSON, another type, an
 * empty text) becomes `sha256:<hex of the body>`. Every other part that cannot be stored becomes null. The same bytes
 * always give the same id. Never throws.
 */
export function extractEvent(places: Readonly<EnvelopePaths>, raw: Buffer): EventExtracts {
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

/** Text that PostgreSQL accepts (no NUL, no lone surrogate) and that fits in an index entry. */
function isColumnText(text: string | null): text is string {
  return (
    text !== null && text.length > 0 && text.length <= maxExtractLength && !text.includes("\0") && text.isWellFormed()
  );
}
