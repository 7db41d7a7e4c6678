/**
 * The `updated_at` of a changed object: now, but always after the previous one. Two changes within a
 * millisecond get neighbouring milliseconds unless `mayTie`, and it never falls when the clock was set back.
 * Both are ISO 8601 in UTC with milliseconds, so that their order is that of the text.
 */
export function nextUpdatedAt(now: string, previous: string, mayTie: boolean): string {
  if (now > previous) return now;
  if (mayTie) return previous;
  return new Date(Date.parse(previous) + 1).toISOString();
}
