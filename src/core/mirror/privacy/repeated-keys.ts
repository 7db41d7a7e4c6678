const [quote, backslash, colon] = [0x22, 0x5c, 0x3a];

/**
 * Whether an object in a body repeats a key. The parser keeps the last value; only the stored bytes still show the
 * others. `body`: the bytes, parsed. Linear in their length.
 */
export function hasRepeatedKeys(raw: Buffer, body: unknown): boolean {
  return writtenKeys(raw) > keptKeys(body);
}

/** Counts the keys in valid JSON: one for each colon outside strings. */
function writtenKeys(raw: Buffer): number {
  let keys = 0;
  let isText = false;
  for (let at = 0; at < raw.length; at++) {
    const byte = raw[at];
    if (byte === quote) isText = !isText;
    else if (isText && byte === backslash) at++;
    else if (!isText && byte === colon) keys++;
  }
  return keys;
}

/** Without recursion: a body may be nested more deeply than the stack. */
function keptKeys(body: unknown): number {
  let keys = 0;
  const rest = [body];
  while (rest.length > 0) {
    const value = rest.pop();
    if (typeof value !== "object" || value === null) continue;
    const fields: unknown[] = Array.isArray(value) ? value : Object.values(value);
    if (!Array.isArray(value)) keys += fields.length;
    for (const field of fields) if (typeof field === "object") rest.push(field);
  }
  return keys;
}
