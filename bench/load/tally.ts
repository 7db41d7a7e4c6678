import { spreadOf } from "../support/statistics.ts";
import type { LoadReport } from "./protocol.ts";
import type { SignedRequest } from "./signed-request.ts";

interface Answer {
  status: number;
  /** All in time of `performance.now()`. */
  dueMs: number;
  sentMs: number;
  request: SignedRequest;
}

/** Counts answers and keeps their latencies. */
export interface Tally {
  answered(answer: Answer): void;
  report(): Omit<LoadReport, "nextEvent" | "cpu">;
}

/** The numbers of the events of a stream that were answered 200. */
export type AcceptedEvents = Set<number>;

/** Adds to `acceptedEvents`. */
export function createTally(acceptedEvents: AcceptedEvents, { keepAcks = false } = {}): Tally {
  const latencies: number[] = [];
  const lateness: number[] = [];
  const refused: Record<string, number> = {};
  const acks: { eventId: string; atMs: number }[] = [];
  const before = acceptedEvents.size;
  let accepted = 0;
  let firstMs = Number.POSITIVE_INFINITY;
  let lastMs = 0;
  return {
    answered({ status, dueMs, sentMs, request }) {
      lastMs = performance.now();
      if (sentMs < firstMs) firstMs = sentMs;
      latencies.push(lastMs - dueMs);
      lateness.push(sentMs - dueMs);
      if (status !== 200) refused[status] = (refused[status] ?? 0) + 1;
      else {
        accepted++;
        acceptedEvents.add(request.number);
        if (keepAcks) acks.push({ eventId: request.eventId, atMs: Date.now() });
      }
    },
    report: () => ({
      accepted,
      distinct: acceptedEvents.size - before,
      refused,
      seconds: (lastMs - firstMs) / 1_000,
      latencyMs: spreadOf(latencies),
      latenessMs: spreadOf(lateness),
      startedAtMs: performance.timeOrigin + firstMs,
      acks,
    }),
  };
}
