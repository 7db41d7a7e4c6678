/** So many that the spans of a year are few, and so few that one is looked through in a millisecond. */
const usualRows = 16_384;

/**
 * Rows that were created one after the other share a span. Other orders than that of creation are kept for each span
 * (`SpanOrder`): a list of one month by time of change reads that month, and not whatever was changed since.
 */
export interface Spans {
  /** The span of a new row. */
  place(createdAtMs: number): number;
  /** Every span that can hold rows created within bounds, the second excluded. */
  covering(fromMs: number, beforeMs: number): number[];
}

interface Span {
  placed: number;
  fromMs: number;
  toMs: number;
}

export function createSpans(rowsPerSpan = usualRows): Spans {
  const spans: Span[] = [];
  return {
    place(createdAtMs) {
      let span = spans.at(-1);
      if (span === undefined || span.placed >= rowsPerSpan) {
        span = { placed: 0, fromMs: createdAtMs, toMs: createdAtMs };
        spans.push(span);
      }
      span.placed += 1;
      // A clock that was set back makes spans overlap, which costs time and nothing else.
      span.fromMs = Math.min(span.fromMs, createdAtMs);
      span.toMs = Math.max(span.toMs, createdAtMs);
      return spans.length - 1;
    },
    covering: (fromMs, beforeMs) =>
      spans.flatMap((span, at) => (span.toMs >= fromMs && span.fromMs < beforeMs ? [at] : [])),
  };
}
