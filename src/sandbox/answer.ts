/** A 2xx answer: a record and how it is shown. Kept for replays, it costs a reference to a snapshot. */
export interface Answer {
  readonly status: number;
  /** The JSON value of the body. */
  body(): unknown;
}

export function answerWith<T>(status: number, record: T, show: (record: T) => unknown): Answer {
  return { status, body: () => show(record) };
}

export function plainAnswer(status: number, body: unknown): Answer {
  return { status, body: () => body };
}
