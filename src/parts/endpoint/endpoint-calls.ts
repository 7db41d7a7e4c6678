import type { Knex } from "knex";

/**
 * A call to the service whose answer shows a signing secret only once. It is stored before it is made, and completed in
 * the transaction that stores the secret. After a crash in between, it can be repeated with the same idempotency key.
 */
export interface EndpointCall {
  /** UUID v4. */
  idempotencyKey: string;
  kind: "register" | "rotate";
  /** Null until the service has assigned one. */
  endpointId: string | null;
  /** The exact request body: a different body with the same key is a conflict. */
  body: Readonly<Record<string, unknown>>;
  createdAt: Date;
}

/** `hidden`: the call was made, but its secret is lost. `refused`: the call had no effect. */
export type CallOutcome = "done" | "hidden" | "refused";

interface CallRow {
  idempotency_key: string;
  kind: EndpointCall["kind"];
  endpoint_id: string | null;
  body: Record<string, unknown>;
  created_at: Date;
  outcome: CallOutcome | null;
}

const callOf = (row: CallRow): EndpointCall => ({
  idempotencyKey: row.idempotency_key,
  kind: row.kind,
  endpointId: row.endpoint_id,
  body: row.body,
  createdAt: row.created_at,
});

/** The call that began but was not completed. There is at most one. */
export async function findOpenCall(db: Knex): Promise<EndpointCall | null> {
  const row = await db<CallRow>("reconcile.endpoint_calls").whereNull("settled_at").first();
  return row === undefined ? null : callOf(row);
}

/**
 * Stores a call before it is made. Returns false when another call is open, which must be finished first. Must be
 * committed before the call is made.
 */
export async function beginCall(db: Knex, call: Omit<EndpointCall, "createdAt">): Promise<boolean> {
  const rows = await db("reconcile.endpoint_calls")
    .insert({
      idempotency_key: call.idempotencyKey,
      kind: call.kind,
      endpoint_id: call.endpointId,
      body: JSON.stringify(call.body),
    })
    .onConflict()
    .ignore()
    .returning("idempotency_key");
  return rows.length > 0;
}

/** Completes a call. Repeatable: the first outcome counts. */
export async function completeCall(
  db: Knex,
  { idempotencyKey, endpointId }: Pick<EndpointCall, "idempotencyKey" | "endpointId">,
  outcome: CallOutcome,
): Promise<void> {
  await db("reconcile.endpoint_calls")
    .where({ idempotency_key: idempotencyKey })
    .whereNull("settled_at")
    .update({ settled_at: db.fn.now(), outcome, endpoint_id: endpointId });
}

/** Endpoints whose newest secret is lost: their last call that had an effect was `hidden`. */
export async function findLostSecrets(db: Knex): Promise<string[]> {
  const { rows } = await db.raw<{ rows: { endpoint_id: string }[] }>(
    `select endpoint_id from (
       select distinct on (endpoint_id) endpoint_id, outcome from reconcile.endpoint_calls
       where outcome in ('done', 'hidden') and endpoint_id is not null
       order by endpoint_id, settled_at desc) last
     where outcome = 'hidden'`,
  );
  return rows.map((row) => row.endpoint_id);
}
