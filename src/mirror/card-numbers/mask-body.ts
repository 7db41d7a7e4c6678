import { NestedTooDeeply } from "../canonical.ts";
import { maskCardNumbers } from "./card-number.ts";
import { maskFields, mayHoldCardNumbers } from "./mask-fields.ts";
import type { Masked } from "./mask-fields.ts";

/** What an event's bytes say; undefined where they are no JSON. */
type Body = { raw: Buffer; body: unknown };

/**
 * A stored body without card numbers, as JSON again so that it can be replayed; of what is no JSON, or nested too deeply
 * to be looked through, the bytes around them stay. Null where there are none. Pure.
 */
export function maskBody({ raw, body }: Body): Masked<Buffer> | null {
  if (body === undefined) return maskText(raw);
  if (!mayHoldCardNumbers(body)) return null;
  try {
    const { value, paths } = maskFields(body);
    return paths.length === 0 ? null : { value: Buffer.from(JSON.stringify(value)), paths };
  } catch (error) {
    if (!(error instanceof NestedTooDeeply)) throw error;
    return maskText(raw);
  }
}

function maskText(raw: Buffer): Masked<Buffer> | null {
  const text = raw.toString("latin1");
  const masked = maskCardNumbers(text);
  return masked === text ? null : { value: Buffer.from(masked, "latin1"), paths: ["(body)"] };
}
