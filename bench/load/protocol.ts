/** What the generator is told to do. Events are numbered, so that no run repeats an event of another. */
export interface LoadOrder {
  /** Several: the connections are spread over them. */
  port: number | readonly number[];
  connections: number;
  seed: string;
  firstEvent: number;
  plan: ClosedLoop | OpenLoop;
}

/** Every connection sends its next request after an answer, until the time or the events run out. */
export interface ClosedLoop {
  kind: "closed";
  seconds: number;
  maxEvents: number;
}

/**
 * Requests are due at random times (a Poisson process) of a mean rate, independent of the server. A request that finds
 * no free connection waits, and its latency counts from when it was due, so that no delay is omitted.
 */
export interface OpenLoop {
  kind: "open";
  seconds: number;
  perSecond: number;
  /** Also report when each event was acknowledged. */
  reportAcks: boolean;
}

export interface LoadReport {
  /** Answered 200. */
  accepted: number;
  /** Every other answer, by status. */
  refused: Record<string, number>;
  /** From the first request to the last answer. */
  seconds: number;
  latencyMs: { p50: number; p99: number; max: number };
  /** Open loop: how late the generator itself was with its requests. Included in the latencies. */
  latenessMs: { p50: number; p99: number; max: number };
  /** One past the last used event. */
  nextEvent: number;
  /** Share of one CPU that the generator used: near 1, the generator is the limit and not the server. */
  cpu: number;
  /** When the first request was sent, in ms since the epoch. */
  startedAtMs: number;
  acks: { eventId: string; atMs: number }[];
}

export type ToGenerator = { order: LoadOrder } | "go" | "end";
export type FromGenerator = "ready" | { report: LoadReport } | { failure: string };
