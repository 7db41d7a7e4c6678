/** Texts end to end in one buffer, and where each of them is. */
export interface JsonBlob {
  bytes: Buffer;
  /** From 1, in bytes; null for an absent text. */
  positions: (number | null)[];
  lengths: (number | null)[];
}

/**
 * Packs JSON texts into one binary parameter, from which the server cuts them: text inside an array would be
 * escaped quote by quote here and unescaped there.
 */
export function packJson(texts: readonly (string | null)[]): JsonBlob {
  const all = texts.join("");
  const bytes = Buffer.from(all, "utf8");
  const isAscii = bytes.length === all.length;
  const positions: (number | null)[] = [];
  const lengths: (number | null)[] = [];
  let next = 1;
  for (const text of texts) {
    const length = text === null ? 0 : isAscii ? text.length : Buffer.byteLength(text);
    positions.push(text === null ? null : next);
    lengths.push(text === null ? null : length);
    next += length;
  }
  return { bytes, positions, lengths };
}
