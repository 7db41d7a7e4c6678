import type { Knex } from "knex";
import { applyBatch } from "../../src/core/worker/apply-batch.ts";
import { storeEvent } from "../reconcile/deliveries.ts";
import { applyDeps } from "../worker/worker-stand.ts";

/** What tries to run, to lead elsewhere, to be calculated or to look like something else, all in one text. */
const tricks = [
  "<script>globalThis.ran=1</script><i data-hostile>",
  '"><img src=https://evil.example/x onerror=globalThis.ran=1><i data-hostile>',
  "' autofocus onfocus=globalThis.ran=1 x='",
  "</title></textarea></table></main><script>globalThis.ran=1</script>",
  "javascript:globalThis.ran=1//",
  "${globalThis.ran=1}{{globalThis.ran=1}}<%=1%>`",
  "\u202Egnp.eciovni\u2066 a\u200Bb\u200Dc\uFEFFd \u001B[31mred\u0007\u0001\u0085",
  "👩‍👩‍👧‍👦💥 اسم العميل שלום",
];

export const hostileTexts = {
  "tricks in it": `=HYPERLINK("http://evil.example","x") ${tricks.join(" ")}`,
  "10,000 letters and no space": "W".repeat(10_000),
} as const;

/** An id from outside may hold anything. */
export const hostileId = "\"><i data-hostile>'&?#%2f/../\u202Eid";

/** Columns by whose value the program decides: their own rooms test what becomes of unknown values. */
const decidedBy =
  /(^|_)(id|ids|key|keys|version|hash|status|state|kind|class|cause|severity|resource|currency|mode|identity|rule|roles|position|handler|method|via|key_id|month|slice|list|name|merchant|action|format|digest|until|channel|subject)$/;

/** The texts inside of JSON. */
const namesInJson =
  "name|first_name|last_name|email|description|failure_reason|failure_code|address_line1|address_line2|city|postal_code|phone|company|message|text|title|reason|error|note|order_number|card_brand|processor_response|type|service|mirror";

/**
 * Puts a text in place of every text from outside that the database holds: names, addresses, e-mail addresses, item
 * names, decline texts, event types, reasons, user agents, notes. Ids stay, and so do the values that code decides by.
 */
export async function spoilTexts(db: Knex, text: string): Promise<void> {
  await db.transaction(async (trx) => {
    // Only so may history be rewritten.
    await trx.raw("set local session_replication_role = replica");
    const { rows } = await trx.raw<{ rows: { place: string; name: string; kind: string }[] }>(
      `select format('%I.%I', table_schema, table_name) as place, column_name as name, data_type as kind
       from information_schema.columns c join information_schema.tables using (table_schema, table_name)
       where data_type in ('text', 'jsonb') and is_generated = 'NEVER' and table_type = 'BASE TABLE'
         and table_schema in ('mirror', 'inbox', 'alerts', 'reconcile', 'dispatch', 'people', 'feed')
         and table_name not in ('accounts', 'sign_in_links', 'attempts')
         and not exists (select from pg_inherits
                         where inhrelid = format('%I.%I', table_schema, table_name)::regclass)
         and not exists (select from pg_index i join pg_attribute a on a.attrelid = indrelid and attnum = any(indkey)
                         where indisunique and indrelid = format('%I.%I', table_schema, table_name)::regclass
                           and attname = column_name)`,
    );
    for (const { place, name, kind } of rows) {
      if (kind === "text" && decidedBy.test(name)) continue;
      const value =
        kind === "text"
          ? "?::text"
          : `regexp_replace(${name}::text, '"(${namesInJson})": "[^"]*"',
               '"\\1": ' || replace(to_json(?::text)::text, '\\', '\\\\'), 'g')::jsonb`;
      // Some texts are checked by the table itself: those cannot be hostile.
      await trx
        .transaction((own) => own.raw(`update ${place} set ${name} = ${value} where ${name} is not null`, [text]))
        .catch(() => {});
    }
  });
}

/** Objects whose ids are hostile, brought by events as any others. */
export async function applyHostileObjects(db: Knex): Promise<void> {
  const at = "2026-11-22T11:00:00.000Z";
  const times = { created_at: at, updated_at: at };
  const sale = {
    id: `${hostileId}-sale`,
    type: "sale",
    status: "chargeback",
    amount: 900,
    currency: "usd",
    ...times,
  };
  const order = {
    id: hostileId,
    order_number: hostileId,
    customer_id: hostileId,
    subscription_id: hostileId,
    subscription_cycle: 2,
    status: "chargeback",
    subtotal: 900,
    discount_amount: 0,
    total: 900,
    currency: "usd",
    items: [{ id: hostileId, name: hostileId, quantity: 1, price: 900, total: 900 }],
    transactions: [sale],
    ...times,
  };
  const customer = { id: hostileId, email: "a@example.com", first_name: hostileId, ...times };
  const subscription = {
    id: hostileId,
    customer_id: hostileId,
    status: "past_due",
    billing_cycle: { interval: "month", interval_count: 1 },
    ...times,
  };
  const declined = {
    ...order,
    id: `${hostileId}-2`,
    status: "failed",
    failure_code: hostileId,
    failure_reason: hostileId,
    attempt_count: 1,
    next_retry_at: "2026-11-23T11:00:00.000Z",
    transactions: [],
  };
  const seqs: number[] = [];
  for (const [type, object] of [
    ["customer.created", customer],
    ["subscription.updated", subscription],
    ["order.updated", order],
    ["order.failed", declined],
    [`order.${hostileId}`, order],
  ] as const) {
    const event = { id: `evt ${type} ${hostileId}`, type, created_at: at, data: { object } };
    seqs.push(await storeEvent(db, event));
  }
  await applyBatch({ ...applyDeps(db), isClockMovable: true }, seqs);
}
