/**
 * Reads `name=value,name=value`, the form of OTEL_EXPORTER_OTLP_HEADERS; values may be percent-encoded. Null where a
 * part is no header.
 */
export function parseHeaderPairs(text: string): Record<string, string> | null {
  const headers: Record<string, string> = {};
  for (const pair of text.split(",")) {
    const at = pair.indexOf("=");
    const [name, value] = [pair.slice(0, at).trim(), decoded(pair.slice(at + 1).trim())];
    if (at < 1 || value === null || !/^[\w!#$%&'*+.^`|~-]+$/.test(name)) return null;
    if (value === "" || !/^[\x20-\x7e]+$/.test(value)) return null;
    headers[name] = value;
  }
  return headers;
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
