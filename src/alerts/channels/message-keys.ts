import { createHash } from "node:crypto";
import type { AlertMessage } from "../message.ts";

/** Hex digits of the SHA-256: short where a person compares, long where a machine does. */
export const digestOf = (text: string, digits: number): string =>
  createHash("sha256").update(text).digest("hex").slice(0, digits);

/** The key of a message as a header can carry it; another text is told by its hash. */
export function headerKey({ idempotencyKey }: AlertMessage): string {
  return /^[\x21-\x7e]{1,200}$/.test(idempotencyKey)
    ? idempotencyKey
    : `sha256:${digestOf(idempotencyKey, 64)}`;
}

/** By which a person in a chat knows a repeat. */
export const shortMark = ({ idempotencyKey }: AlertMessage): string =>
  `#${digestOf(idempotencyKey, 8)}`;
