// A byte order mark is allowed and skipped; bytes that are not UTF-8 make the body unreadable, never different.
const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

/** The body of an event as JSON, or undefined when it is none. Never throws. */
export function parseEventBody(raw: Buffer): unknown {
  try {
    return JSON.parse(strictUtf8.decode(raw));
  } catch {
    return undefined;
  }
}
