import type { Knex } from "knex";
import { rewriteBatch } from "../inbox/rewrite-bodies.ts";
import { maskBody } from "../mirror/card-numbers/mask-body.ts";
import type { Masked } from "../mirror/card-numbers/mask-fields.ts";
import { parseEventBody } from "../service/event-envelope.ts";

/** New bodies by the numbers of their events, with where card numbers stood in them. */
export type MaskedBodies = ReadonlyMap<number, Masked<Buffer>>;

/**
 * Parses the bodies of claimed events, after masking the card numbers in those that have any: in what is read from them
 * and in what is stored. Needs the transaction that settles the events.
 */
export async function readMasked(
  trx: Knex.Transaction,
  events: readonly { seq: number; raw: Buffer }[],
): Promise<{ bodies: { seq: number; body: unknown }[]; masked: MaskedBodies }> {
  const parsed = events.map(({ seq, raw }) => ({ seq, raw, body: parseEventBody(raw) }));
  const found = parsed.filter((event) => maskBody(event) !== null);
  const masked = await maskStoredBodies(
    trx,
    found.map(({ seq }) => seq),
  );
  const bodies = parsed.map(({ seq, body }) => {
    const rewritten = masked.get(seq);
    return { seq, body: rewritten === undefined ? body : parseEventBody(rewritten.value) };
  });
  return { bodies, masked };
}

/**
 * Masks card numbers in the stored bodies of these events. Needs the transaction that settles them or puts them off,
 * so that no body keeps a card number beyond the first attempt. Idempotent.
 */
export async function maskStoredBodies(
  trx: Knex.Transaction,
  seqs: readonly number[],
): Promise<MaskedBodies> {
  const masked = new Map<number, Masked<Buffer>>();
  if (seqs.length === 0) return masked;
  // Read again under a lock: an erasure may have rewritten them since.
  await rewriteBatch(trx, seqs.map(String), (raw, seq) => {
    const body = maskBody({ raw, body: parseEventBody(raw) });
    if (body !== null) masked.set(Number(seq), body);
    return body?.value ?? raw;
  });
  return masked;
}
