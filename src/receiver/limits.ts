export interface ReceiverLimits {
  /** From connecting, or from the first byte of a further request, to the end of the headers. */
  headersMs: number;
  /** The same to the end of the body. */
  requestMs: number;
  /** From the end of the headers to the answer. */
  answerMs: number;
  /** How coarsely the three are watched. */
  tickMs: number;
  /** How long a connection may be idle between two requests: longer than proxies keep theirs (60 s). */
  keepAliveMs: number;
  /** Requests over one connection; then it is closed, and the sender connects again. */
  requestsPerConnection: number;
  /** Connections from one address that have not sent a request yet. */
  silentPerAddress: number;
  /** Requests that wait at a time for the secrets to be read again, because their signature did not verify. */
  waitingForSecrets: number;
  /** Of those, from one address. */
  waitingPerAddress: number;
  /** For closing, everything together. */
  closeMs: number;
}

/** Headers, answer and two ticks together are under 10 s: the longest that a request is held. */
export const defaultReceiverLimits: ReceiverLimits = {
  headersMs: 3_000,
  requestMs: 5_000,
  answerMs: 6_000,
  tickMs: 250,
  keepAliveMs: 65_000,
  requestsPerConnection: 10_000,
  silentPerAddress: 256,
  waitingForSecrets: 64,
  waitingPerAddress: 32,
  closeMs: 10_000,
};

/** Enough for every connection to have a body of 64 KiB under way, and for four of the largest. */
export const defaultHeldBodyBytes = (maxBodyBytes: number): number =>
  Math.max(64 * 1024 * 1024, 4 * maxBodyBytes);
