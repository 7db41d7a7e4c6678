import type { Dispatcher } from "undici";
import type { Clock, ServiceClock } from "../../platform/clock.ts";
import {
  type Deadline,
  type ExchangeLimits,
  type HttpMethod,
  exchange,
  startDeadline,
} from "../../platform/http/exchange.ts";
import type { Log } from "../../platform/log.ts";
import type { Random } from "../../platform/random.ts";
import type { RetryPolicy } from "../../platform/retry-delay.ts";
import type { CallPriority, CallGate, Pace, Sleep } from "./pace.ts";
import { type ReadAnswer, readAnswer } from "./read-answer.ts";
import { decideRetry } from "./retry-decision.ts";
import {
  type FailedRequest,
  ServiceUnavailableError,
  type CallAttempt,
  describeFailure,
  describeRequest,
  errorCode,
  failureOf,
} from "./service-errors.ts";

export type ServiceAnswer<Body = unknown> = {
  status: number;
  body: Body;
  /** The service's clock when it answered, in whole seconds. */
  date: Date;
  /** The service's trace id, for its support. */
  requestId: string | null;
};

export type CallSettings = ExchangeLimits & { retry: Readonly<RetryPolicy> };

export type Caller = {
  pool(): Promise<Dispatcher>;
  gate: CallGate;
  pace: Pace;
  sleep: Sleep;
  log: Log;
  wallClock: Clock;
  serviceClock: ServiceClock;
  random: Random;
  apiKey: string;
  /** The interface version that requests ask for; null once the service has refused it. */
  version: string | null;
};

type ServiceRequest = {
  method: HttpMethod;
  /** Shown to people: without the query, which may hold an e-mail address. */
  path: string;
  /** The path with its prefix and query, as it is sent. */
  target: string;
  body: string | null;
  idempotencyKey: string | null;
};

type CallBounds = { priority: CallPriority; deadlineMs: number; parents: readonly AbortSignal[] };

/**
 * Makes one call with its waits and retries. Returns a 2xx answer, and the 404 of a read; otherwise throws a
 * `ServiceError`, or the reason of the parent signal that aborted.
 */
export async function callService(
  caller: Caller,
  request: ServiceRequest,
  bounds: CallBounds,
  settings: CallSettings,
): Promise<ServiceAnswer> {
  const endsAt = caller.wallClock.now().getTime() + bounds.deadlineMs;
  const remainingMs = (): number => endsAt - caller.wallClock.now().getTime();
  const deadline = startDeadline(bounds.deadlineMs, bounds.parents);
  try {
    for (let attempt = 1; ; attempt += 1) {
      const untried = describeRequest(request, attempt - 1, null);
      const release = await takeTurn(caller, bounds.priority, deadline, remainingMs(), untried);
      const made = await tryOnce(caller, request, settings, deadline.signal).finally(release);
      const tried = describeRequest(request, attempt, made.answer);
      const answer = acceptedAnswer(caller, request, made.answer);
      if (answer !== null) return answer;
      if (deadline.signal.aborted) throw interruption(deadline, tried);
      if (dropRefusedVersion(caller, made.answer)) continue;

      const failed = describeFailure(made);
      if (failed?.kind === "answer" && failed.status === 429) {
        caller.pace.slowDown(caller.wallClock.now().getTime(), failed.retryAfterMs ?? 0);
      }
      const repeatable = request.method === "GET" || request.idempotencyKey !== null;
      const decision =
        failed === null
          ? { retry: false as const, afterMs: null }
          : decideRetry(caller.random, { failed, repeatable, attempt, remainingMs: remainingMs() }, settings.retry);
      const { afterMs } = decision;
      if (!decision.retry) {
        throw failureOf(made, tried, { retryAfterMs: afterMs });
      }
      const code = made.answer?.error?.code ?? errorCode(made.cause);
      caller.log.warn({ ...tried, code, waitMs: afterMs }, "a call to the service failed and is retried");
      await caller.sleep(decision.afterMs, deadline.signal).catch(() => {
        throw interruption(deadline, tried);
      });
    }
  } finally {
    deadline.dispose();
  }
}

async function takeTurn(
  { pace, gate, wallClock }: Caller,
  priority: CallPriority,
  deadline: Deadline,
  remainingMs: number,
  request: FailedRequest,
): Promise<() => void> {
  const waitMs = pace.waitMs(wallClock.now().getTime());
  if (waitMs > remainingMs) {
    const what = "not sent, since the service asked for a longer pause than this call may take";
    throw new ServiceUnavailableError(what, request, { retryAfterMs: waitMs });
  }
  return gate.acquire(priority, deadline.signal).catch(() => {
    throw interruption(deadline, request);
  });
}

async function tryOnce(
  { pool, apiKey, version, serviceClock }: Caller,
  request: ServiceRequest,
  limits: ExchangeLimits,
  signal: AbortSignal,
): Promise<CallAttempt> {
  const headers = {
    authorization: `Bearer ${apiKey}`,
    accept: "application/json",
    "user-agent": "tallyhook",
    ...(version === null ? {} : { "svc-version": version }),
    ...(request.body === null ? {} : { "content-type": "application/json" }),
    ...(request.idempotencyKey === null ? {} : { "x-svc-idempotency-key": request.idempotencyKey }),
  };
  const { method, target, body } = request;
  try {
    const sent = { method, path: target, headers, body };
    const answer = await exchange(await pool(), sent, limits, signal);
    const read = readAnswer(answer, serviceClock.now());
    if (read.date !== null) serviceClock.observe(read.date);
    return { answer: read };
  } catch (cause) {
    return { answer: null, cause };
  }
}

/**
 * Stops asking for our version of the interface when the service refuses it, and returns whether it did; the interface
 * does not list its versions. A refused call has done nothing, so it is repeated without the version. All later calls
 * get the account's own version.
 */
function dropRefusedVersion(caller: Caller, answer: ReadAnswer | null): boolean {
  const code = answer?.error?.code;
  if (caller.version === null) return false;
  if (code !== "invalid_api_version" && code !== "api_version_sunset") return false;
  const { version } = caller;
  caller.version = null;
  caller.log.warn({ version, code }, "the service does not serve this version: the account's own is used");
  return true;
}

/** A 2xx answer, or the 404 of a read; null when the call failed. */
function acceptedAnswer(
  { pace, log, serviceClock }: Caller,
  { method, path }: ServiceRequest,
  answer: ReadAnswer | null,
): ServiceAnswer | null {
  if (answer === null || !answer.content.ok) return null;
  const { status, requestId } = answer;
  // A 404 without the code may come from a proxy or a wrong base address: it does not prove that the object is gone.
  const isAbsence = method === "GET" && answer.error?.code === "resource_not_found";
  if (!(status >= 200 && status < 300) && !(status === 404 && isAbsence)) return null;
  pace.speedUp();
  log.debug({ method, path, status, requestId }, "the service answered");
  return { status, body: answer.content.body, date: answer.date ?? serviceClock.now(), requestId };
}

function interruption(deadline: Deadline, request: FailedRequest): Error {
  if (!deadline.expired()) return deadline.signal.reason as Error;
  const what = "no usable answer in the time allowed";
  return new ServiceUnavailableError(what, request, { retryAfterMs: null });
}
