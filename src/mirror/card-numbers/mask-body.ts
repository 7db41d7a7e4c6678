import { NestedTooDeeply } from "../canonical.ts";
import { hasRepeatedKeys } from "../repeated-keys.ts";
import { maskCardNumbers, mayHoldCardNumber } from "./card-number.ts";
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
  if (!mayHoldCardNumbers(body)) return maskHidden(raw, body);
  try {
    const { value, paths } = maskFields(body);
    if (paths.length === 0) return maskHidden(raw, body);
    return { value: Buffer.from(JSON.stringify(value)), paths };
  } catch (error) {
    if (!(error instanceof NestedTooDeeply)) throw error;
    return maskText(raw);
  }
}

/** A card number under a key that is said again is in the bytes alone: what the body says stays, the rest goes. */
function maskHidden(raw: Buffer, body: unknown): Masked<Buffer> | null {
  if (!mayHoldCardNumber(raw.toString("latin1")) || !hasRepeatedKeys(raw, body)) return null;
  const masked = maskText(raw);
  return masked === null ? null : { ...masked, value: Buffer.from(JSON.stringify(body)) };
}

function maskText(raw: Buffer): Masked<Buffer> | null {
  const text = raw.toString("latin1");
  const masked = maskCardNumbers(text);
  return masked === text ? null : { value: Buffer.from(masked, "latin1"), paths: ["(body)"] };
}
