import { setTimeout as sleep } from "node:timers/promises";
import { Agent, request } from "undici";
import { signatureScheme } from "../../src/core/contract/signature/signature-scheme.ts";
import type { Random } from "../../src/platform/random.ts";
import type { History, HistoryEvent } from "./history.ts";

/** What is kept of an event that was answered 2xx: all but its bytes. */
export type Acknowledged = Omit<HistoryEvent, "body">;

export interface SenderOptions {
  url: string;
  secret: string;
  eventsPerSecond: number;
  connections?: number;
  /** This part of the acknowledged events is delivered once more. */
  repeatRate?: number;
}

export interface SenderCounts {
  acknowledged: number;
  /** Answers 2xx `duplicate: true` to a first delivery or its retry: committed before, but the answer was lost. */
  committedUnanswered: number;
  repeats: number;
  refused503: number;
  brokenConnections: number;
  slowestAnswerMs: number;
}

export interface Sender {
  readonly acknowledged: ReadonlyMap<string, Acknowledged>;
  readonly counts: Readonly<SenderCounts>;
  /** Resolves after so many more acknowledgements; rejects at the deadline or on an answer that may not be. */
  whenAcknowledged(more: number, withinMs?: number): Promise<void>;
  /** Takes no further events, resolves when all taken ones are acknowledged. */
  finish(withinMs?: number): Promise<void>;
  /** Gives up at once. */
  abort(): Promise<void>;
}

const scheme = signatureScheme("svc");
const retryAfterMs = 100;
/** The receiver promises an answer within ten seconds. */
const answerTimeoutMs = 12_000;

/**
 * Delivers the events of a history as the service does: signed, over a few connections at an even pace, again and
 * again until each is answered 2xx. Only 200, 503 and broken connections may happen; anything else ends it.
 */
export function startSender({ history, random }: { history: History; random: Random }, options: SenderOptions): Sender {
  const { url, secret, eventsPerSecond, connections = 24, repeatRate = 0.05 } = options;
  const agent = new Agent({
    connections,
    headersTimeout: answerTimeoutMs,
    bodyTimeout: answerTimeoutMs,
    connectTimeout: 5_000,
  });
  const acknowledged = new Map<string, Acknowledged>();
  const counts: SenderCounts = {
    acknowledged: 0,
    committedUnanswered: 0,
    repeats: 0,
    refused503: 0,
    brokenConnections: 0,
    slowestAnswerMs: 0,
  };
  const watchers = new Set<() => void>();
  let failure: Error | undefined;
  let isFinishing = false;
  let isAborted = false;
  let nextAtMs = performance.now();

  /** Ten milliseconds are the least that a timer keeps well: faster than that it comes in small groups. */
  async function paced(): Promise<void> {
    nextAtMs = Math.max(nextAtMs, performance.now() - 50) + 1_000 / eventsPerSecond;
    const waitMs = nextAtMs - performance.now();
    if (waitMs > 1) await sleep(waitMs);
  }

  /** Null: it has to be sent again. */
  async function deliver({ id, body }: HistoryEvent): Promise<{ duplicate: boolean } | null> {
    const at = new Date();
    const signature = scheme.sign({ body, secrets: [secret], at, messageId: id });
    const sentMs = performance.now();
    try {
      const answer = await request(url, {
        dispatcher: agent,
        method: "POST",
        headers: { "content-type": "application/json", ...signature },
        body,
      });
      const text = await answer.body.text();
      counts.slowestAnswerMs = Math.max(counts.slowestAnswerMs, performance.now() - sentMs);
      if (answer.statusCode === 200) {
        const said = JSON.parse(text) as { id: string; duplicate: boolean };
        if (said.id !== id) throw new Error(`the receiver acknowledged ${said.id} for ${id}`);
        return said;
      }
      if (answer.statusCode !== 503) {
        throw new Error(`the receiver answered ${answer.statusCode}: ${text}`);
      }
      if (answer.headers["retry-after"] === undefined) {
        throw new Error("the receiver answered 503 without Retry-After");
      }
      counts.refused503++;
    } catch (error) {
      if (!isBrokenConnection(error)) throw error;
      counts.brokenConnections++;
    }
    return null;
  }

  async function deliverUntilAcknowledged(event: HistoryEvent): Promise<void> {
    let answer = await deliver(event);
    while (answer === null && !isAborted) {
      await sleep(retryAfterMs * (0.5 + random()));
      answer = await deliver(event);
    }
    if (answer === null) return;
    if (answer.duplicate) counts.committedUnanswered++;
    const { body: _, ...kept } = event;
    acknowledged.set(event.id, kept);
    counts.acknowledged++;
    for (const watch of watchers) watch();
    if (random() < repeatRate && (await deliver(event)) !== null) counts.repeats++;
  }

  async function loop(): Promise<void> {
    while (!isFinishing && failure === undefined) {
      await paced();
      if (isFinishing) return;
      await deliverUntilAcknowledged(history.next());
    }
  }

  const loops = Promise.all(
    Array.from({ length: connections }, () =>
      loop().catch((error: unknown) => {
        failure ??= error instanceof Error ? error : new Error(String(error));
        for (const watch of watchers) watch();
      }),
    ),
  );

  function watched(what: string, isDone: () => boolean, withinMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (act: () => void): void => {
        clearTimeout(timer);
        watchers.delete(watch);
        act();
      };
      const watch = (): void => {
        if (failure !== undefined) settle(() => reject(failure ?? new Error("unknown")));
        else if (isDone()) settle(resolve);
      };
      const timer = setTimeout(() => settle(() => reject(new Error(`not within ${withinMs} ms: ${what}`))), withinMs);
      watchers.add(watch);
      watch();
    });
  }

  return {
    acknowledged,
    counts,
    whenAcknowledged(more, withinMs = 30_000) {
      const wanted = counts.acknowledged + more;
      const what = `${more} more acknowledged events`;
      return watched(what, () => counts.acknowledged >= wanted, withinMs);
    },
    async finish(withinMs = 30_000) {
      isFinishing = true;
      let isOver = false;
      const over = loops.then(() => {
        isOver = true;
        for (const watch of watchers) watch();
      });
      await watched("every event is acknowledged", () => isOver, withinMs);
      await over;
      await agent.close();
    },
    async abort() {
      isFinishing = true;
      isAborted = true;
      await agent.destroy();
      await loops;
    },
  };
}

/** The process went away under a request, or does not listen (yet). */
function isBrokenConnection(error: unknown): boolean {
  const code = (error as { code?: unknown }).code;
  return code === "ECONNREFUSED" || code === "ECONNRESET" || code === "EPIPE" || code === "UND_ERR_SOCKET";
}
