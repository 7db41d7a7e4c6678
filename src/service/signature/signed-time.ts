/** Whole seconds since 1970 in decimal digits, or null: no sign, no fraction, no trailing text. */
export function parseUnixSeconds(text: string): number | null {
  return /^\d{1,12}$/.test(text) ? Number(text) : null;
}

export function unixSeconds(at: Date): number {
  return Math.floor(at.getTime() / 1000);
}

/**
 * Whether a signature's time is near enough to now, before or after. False for an invalid date or
 * tolerance: what cannot be compared is not fresh.
 */
export function isWithinTolerance(signedAt: number, now: Date, toleranceSeconds: number): boolean {
  return Math.abs(now.getTime() - signedAt * 1000) <= toleranceSeconds * 1000;
}
