import type { Knex } from "knex";
import { redactTexts } from "../../../platform/postgres/redact-texts.ts";

/**
 * Takes out the reasons of prepared months that name a person. Those of closed months are under their seals and stay:
 * `sealed` lists the months whose reason names the person. Needs the erasure's transaction; idempotent.
 */
export async function eraseReasons(
  trx: Knex.Transaction,
  named: (text: string) => boolean,
): Promise<{ redacted: number; sealed: string[] }> {
  const prepared = { table: "reports.preparations", key: "id", column: "reason" };
  const redacted = await redactTexts(trx, prepared, ({ text }) => named(text));
  const closes = await trx("reports.closes")
    .whereNotNull("reason")
    .orderBy("month")
    .select<{ month: string; reason: string }[]>(trx.raw("to_char(month, 'YYYY-MM') as month"), "reason");
  return { redacted, sealed: closes.flatMap((each) => (named(each.reason) ? [each.month] : [])) };
}
