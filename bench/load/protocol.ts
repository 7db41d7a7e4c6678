/**
 * `plain`: a shop's events without faults. `real`: with repeats, disorder, declines and all other faults. `stripe`:
 * events of Stripe, like the plain ones, for the peer. `hot`: all about one order.
 */
export type Mix = "plain" | "real" | "stripe" | "hot";

/** A stream of numbered events. The same stream and number give the same event, byte for byte. */
export interface EventStream {
  mix: Mix;
  seed: string;
  /** When its first event was made, in ms since the epoch. The plain mix has a time of its own. */
  sinceMs: number;
}

export interface SampleEvent {
  id: string;
  /** Its number in the stream; that of the first delivery where this is a repeat. */
  number: number;
  body: Buffer;
}

export interface LoadOrder {
  /** Several: the connections are spread over them. */
  port: number | readonly number[];
  connections: number;
  stream: EventStream;
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
  /** Number of accepted deliveries that were the first of their event with a 200, in the whole stream. */
  distinct: number;
  /** Every other answer, by status. */
  refused: Record<string, number>;
  /** From the first request to the last answer. */
  seconds: number;
  latencyMs: { p50: number; p99: number; max: number };
  /** Open loop: how late the generator itself was with its requests. Included in the latencies. */
  latenessMs: { p50: number; p99: number; max: number };
  /** One past the last event that was sent. */
  nextEvent: number;
  /** Share of one CPU that the generator used: near 1, the generator is the limit and not the server. */
  cpu: number;
  /** When the first request was sent, in ms since the epoch. */
  startedAtMs: number;
  acks: { eventId: string; atMs: number }[];
}

export type ToGenerator = { order: LoadOrder } | "go" | "end";
export type FromGenerator = "ready" | { report: LoadReport } | { failure: string };
