/**
 * A 2xx answer: a record and how it is rendered. Keeping one for replays costs a reference to a snapshot, not the text
 * of a body.
 */
export interface Answer {
  readonly status: number;
  readonly record: unknown;
  readonly show: (record: never) => unknown;
}

export function answerWith<T>(status: number, record: T, show: (record: T) => unknown): Answer {
  return { status, record, show };
}

/** An answer whose JSON value is known. */
export function plainAnswer(status: number, body: unknown): Answer {
  return { status, record: body, show: asIs };
}

const asIs = (body: unknown) => body;

/** The JSON value of the body. */
export function bodyOf(answer: Answer): unknown {
  return answer.show(answer.record as never);
}
