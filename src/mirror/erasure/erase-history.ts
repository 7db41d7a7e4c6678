import type { Knex } from "knex";
import { sqlArray } from "../../platform/sql-array.ts";
import { redactedContent } from "./redact-states.ts";

interface VersionRow {
  seq: string;
  resource: string;
  id: string;
  source_updated_at: string;
  content_hash: string;
  data: Record<string, unknown>;
}

/**
 * Redacts the history of these objects and says how many states there were. Two states that differed in personal data
 * only become one. The one place that changes history: it says so to the table's trigger, in its transaction, which it
 * needs. Idempotent.
 */
export async function eraseHistory(trx: Knex.Transaction, ids: readonly string[]): Promise<number> {
  await trx.raw("select set_config('tallyhook.erasure', 'on', true)");
  const { rows } = await trx.raw<{ rows: VersionRow[] }>(
    `select v.seq, v.resource, v.id, v.source_updated_at::text as source_updated_at, v.content_hash, v.data
     from mirror.versions v
     join unnest(array['order', 'order.dunning', 'transaction', 'transaction.inline', 'subscription',
                       'subscription.detail', 'customer']) as of_group(resource) on v.resource = of_group.resource
     where v.id = any(?::text[])`,
    [sqlArray(ids)],
  );
  for (const { seq, resource, id, source_updated_at, content_hash, data } of rows) {
    const { json, hash } = redactedContent(JSON.stringify(data));
    if (hash === content_hash) continue;
    const key = { resource, id, source_updated_at };
    const same = await trx("mirror.versions")
      .where({ ...key, content_hash: hash })
      .first("seq");
    const row = trx("mirror.versions").where({ ...key, content_hash, seq });
    await (same === undefined ? row.update({ data: json, content_hash: hash }) : row.delete());
  }
  await trx.raw("select set_config('tallyhook.erasure', 'off', true)");
  return rows.length;
}
