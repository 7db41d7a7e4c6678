/** One bad answer, of a proxy for example, must not park a read for years. */
const longestWaitMs = 3_600_000;

/**
 * How long a `Retry-After` header asks to wait, in milliseconds, an hour at most; null when it is absent or unreadable.
 * Both forms of the header are read: seconds, and an HTTP date. A date is measured against the same
 * answer's `Date`, so that neither clock skew nor a service whose clock was moved changes the wait.
 */
export function parseRetryAfter(header: string | null, answeredAt: Date): number | null {
  if (header === null) return null;
  const text = header.trim();
  if (/^\d+$/.test(text)) return Math.min(longestWaitMs, Number(text) * 1_000);
  const until = parseHttpDate(text);
  if (until === null) return null;
  return Math.min(longestWaitMs, Math.max(0, until.getTime() - answeredAt.getTime()));
}

/** An HTTP date (RFC 9110, 5.6.7) in its current form or one of the two obsolete ones, or null. */
export function parseHttpDate(text: string): Date | null {
  if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? /.test(text)) return null;
  // The asctime form names no zone and would be read as local time.
  const instant = new Date(text.endsWith(" GMT") ? text : `${text} GMT`);
  return Number.isNaN(instant.getTime()) ? null : instant;
}
