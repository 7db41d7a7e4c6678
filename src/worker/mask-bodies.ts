import type { Knex } from "knex";
import type { MaskedObject } from "../alerts/card-numbers.ts";
import { rewriteBatch } from "../inbox/rewrite-bodies.ts";
import type { Settlement } from "../inbox/settle.ts";
import { arrivalOf, redactArrivals } from "../mirror/erasure/redact-arrivals.ts";
import { maskBody } from "../mirror/card-numbers/mask-body.ts";
import type { Masked } from "../mirror/card-numbers/mask-fields.ts";
import { parseEventBody } from "../service/event-envelope.ts";
import type { EnvelopePlaces } from "../service/event-envelope.ts";

/** New bodies by the numbers of their events, with where card numbers stood in them. */
export type MaskedBodies = ReadonlyMap<number, Masked<Buffer>>;

/**
 * Parses the bodies of claimed events as they may be kept: without what is personal of people who were erased, and with
 * card numbers masked. What is read from them and what is stored are the same from then on. Needs the transaction that
 * settles the events.
 */
export async function readKept(
  trx: Knex.Transaction,
  places: Readonly<EnvelopePlaces>,
  events: readonly { seq: number; raw: Buffer }[],
): Promise<{ bodies: { seq: number; body: unknown }[]; masked: MaskedBodies }> {
  const arrived = events.map(({ seq, raw }) => ({ seq, ...arrivalOf(raw) }));
  const left = await redactArrivals(trx, places, arrived);
  await storeRedacted(
    trx,
    new Map([...left].map(([{ seq }, { raw }]) => [String(seq), raw] as const)),
  );
  const parsed = arrived.map((event) => {
    const redacted = left.get(event);
    return redacted === undefined
      ? event
      : { seq: event.seq, raw: redacted.raw ?? Buffer.alloc(0), body: redacted.body };
  });
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
 * The same for an event that fails: its stored body keeps neither beyond the first attempt. Needs the transaction that
 * puts it off. Idempotent.
 */
export async function keepStoredBody(
  trx: Knex.Transaction,
  places: Readonly<EnvelopePlaces>,
  seq: number,
): Promise<MaskedBodies> {
  const stored = await trx("inbox.receipts")
    .where({ seq })
    .first<{ raw: Buffer | null } | undefined>("raw");
  if (stored === undefined || stored.raw === null) return new Map();
  const { masked } = await readKept(trx, places, [{ seq, raw: stored.raw }]);
  return masked;
}

/** In which fields of which objects bodies held card numbers; of an event without an object, in the event. Pure. */
export function maskedObjects(
  settlements: readonly Pick<Settlement, "seq" | "resourceType" | "resourceId">[],
  masked: MaskedBodies,
  places: Readonly<EnvelopePlaces>,
): MaskedObject[] {
  const ofObject = `${places.object}.`;
  return settlements.flatMap(({ seq, resourceType, resourceId }) => {
    const paths = masked
      .get(seq)
      ?.paths.map((path) => (path.startsWith(ofObject) ? path.slice(ofObject.length) : path));
    if (paths === undefined) return [];
    return resourceType === null || resourceId === null
      ? [{ resource: "event", id: String(seq), paths }]
      : [{ resource: resourceType, id: resourceId, paths }];
  });
}

async function storeRedacted(
  trx: Knex.Transaction,
  bodies: ReadonlyMap<string, Buffer | null>,
): Promise<void> {
  if (bodies.size === 0) return;
  await rewriteBatch(trx, [...bodies.keys()], (raw, seq) => {
    const body = bodies.get(seq);
    return body === undefined ? raw : body;
  });
}

/** Masks card numbers in the stored bodies of these events. */
async function maskStoredBodies(
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
