import { withoutPersonalData } from "./personal-data.ts";

/** A stored body without what is personal, as JSON again so that it can be replayed; null for what is no JSON. */
export function redactBody(raw: Buffer): Buffer | null {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(raw);
    return Buffer.from(JSON.stringify(withoutPersonalData(JSON.parse(text))));
  } catch {
    return null;
  }
}
