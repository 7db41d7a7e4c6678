/** Longer values are refused unread: the work for an unauthenticated request stays bounded. */
const maxHeaderLength = 8192;

type HeaderValue =
  | { ok: true; value: string }
  | { ok: false; reason: "missing_header" | "duplicate_header" | "malformed_header" };

/**
 * The value of a header that must be there once. Two copies are refused, even equal ones: which of
 * them a proxy or a framework would have shown is not ours to guess.
 *
 * @param name in lower case
 */
export function singleHeader(rawHeaders: readonly string[], name: string): HeaderValue {
  let value: string | undefined;
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const candidate = rawHeaders[index] ?? "";
    if (candidate.length !== name.length || candidate.toLowerCase() !== name) continue;
    if (value !== undefined) return { ok: false, reason: "duplicate_header" };
    value = rawHeaders[index + 1] ?? "";
  }
  if (value === undefined) return { ok: false, reason: "missing_header" };
  if (value === "" || value.length > maxHeaderLength) {
    return { ok: false, reason: "malformed_header" };
  }
  return { ok: true, value };
}
