import { spreadOf } from "../support/statistics.ts";
import type { LoadReport } from "./protocol.ts";

interface Answer {
  status: number;
  /** All in time of `performance.now()`. */
  dueMs: number;
  sentMs: number;
  eventId: string;
}

/** Counts answers and keeps their latencies. */
export interface Tally {
  answered(answer: Answer): void;
  report(): Omit<LoadReport, "nextEvent" | "cpu">;
}

export function createTally({ keepAcks = false } = {}): Tally {
  const latencies: number[] = [];
  const lateness: number[] = [];
  const refused: Record<string, number> = {};
  const acks: { eventId: string; atMs: number }[] = [];
  let accepted = 0;
  let firstMs = Number.POSITIVE_INFINITY;
  let lastMs = 0;
  return {
    answered({ status, dueMs, sentMs, eventId }) {
      lastMs = performance.now();
      if (sentMs < firstMs) firstMs = sentMs;
      latencies.push(lastMs - dueMs);
      lateness.push(sentMs - dueMs);
      if (status !== 200) refused[status] = (refused[status] ?? 0) + 1;
      else {
        accepted++;
        if (keepAcks) acks.push({ eventId, atMs: Date.now() });
      }
    },
    report: () => ({
      accepted,
      refused,
      seconds: (lastMs - firstMs) / 1_000,
      latencyMs: spreadOf(latencies),
      latenessMs: spreadOf(lateness),
      startedAtMs: performance.timeOrigin + firstMs,
      acks,
    }),
  };
}
