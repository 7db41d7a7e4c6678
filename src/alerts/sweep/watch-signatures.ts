import type { Knex } from "knex";
import { clear, raise } from "../conditions.ts";
import type { AlertDesk } from "../desk.ts";
import { signatureCondition, signatureEnds } from "../rules/signatures.ts";

/** Answers of the receivers that a wrong or a late signature got, apart. */
const reasonsOf = {
  failed: ["no_match", "no_secret", "missing_header", "malformed_header", "duplicate_header"],
  stale: ["stale"],
} as const;

/** Tells of signatures that fail above a rate. Needs a transaction; idempotent. */
export async function watchSignatures(trx: Knex.Transaction, desk: AlertDesk): Promise<void> {
  const { count, withinMinutes } = desk.settings.rules.signature_failures;
  const at = desk.clock.now();
  for (const kind of ["failed", "stale"] as const) {
    const { rows } = await trx.raw<{ rows: { failures: string; accepted: string }[] }>(
      `select coalesce(sum(times) filter (where reason = any(?::text[])), 0) as failures,
              coalesce(sum(times) filter (where reason = 'accepted'), 0) as accepted
       from receiver.answers_by_minute where minute > now() - make_interval(mins => ?)`,
      [[...reasonsOf[kind]], withinMinutes],
    );
    const [failures, accepted] = [Number(rows[0]?.failures), Number(rows[0]?.accepted)];
    const condition = signatureCondition(desk.settings.rules, { kind, failures, accepted }, at);
    if (failures >= count) await raise(trx, desk, [condition], "sweep");
    // A rate about the threshold is one alert and not many.
    else if (failures < count / 2) {
      await clear(trx, desk, [{ key: condition.key, end: signatureEnds[kind], at }], "sweep");
    }
  }
}
