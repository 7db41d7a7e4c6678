import { holdsRefusedText } from "../mirror/canonical.ts";

/**
 * Whether the mirror holds U+FFFD for text of this body, because `jsonb` refuses NUL and lone surrogates. Null where the
 * bytes were pruned; a body that is no JSON has left nothing in the mirror.
 */
export function hasReplacedText(raw: Buffer | null): boolean | null {
  if (raw === null) return null;
  try {
    return holdsRefusedText(JSON.parse(raw.toString("utf8")));
  } catch {
    return false;
  }
}
