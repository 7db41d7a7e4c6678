import type { Knex } from "knex";
import { clearOthers, raise } from "./conditions.ts";
import type { AlertDesk } from "./desk.ts";
import { findBrokenIdentities, findEndpointProblems } from "./facts/findings.ts";
import { endpointCondition, identityCondition, runConditions } from "./rules/reconciliation.ts";
import type { RunOutcome } from "./rules/reconciliation.ts";

/**
 * Tells how a run ended, and brings the alerts on identities and the endpoint up to its findings. A run that answers for
 * everything speaks for the earlier ones as well: their alerts end. Opens its own transaction; idempotent.
 */
export async function assessRun(db: Knex, desk: AlertDesk, run: RunOutcome): Promise<void> {
  const { rules } = desk.settings;
  const at = desk.serviceClock.now();
  const conditions = runConditions(rules, run, at);
  const broken = await findBrokenIdentities(db);
  const problems = await findEndpointProblems(db);
  const lasting = [
    ...broken.map((one) => identityCondition(rules, one, at)),
    ...problems.map((one) => endpointCondition(rules, one, at)),
  ];
  await db.transaction(async (trx) => {
    await raise(trx, desk, [...conditions, ...lasting], "reconciliation");
    if (run.kind === "range") return;
    const ends = [
      { prefix: "drift:", title: `Drift: run ${run.id} has spoken since` },
      { prefix: "incomplete:", title: `Reconciliation: run ${run.id} has spoken since` },
      { prefix: "identity:", title: "The identity holds again" },
      { prefix: "endpoint:", title: "The endpoint is in order again" },
    ];
    const keep = [...conditions, ...lasting].map(({ key }) => key);
    for (const end of ends) await clearOthers(trx, desk, { ...end, keep, at }, "reconciliation");
  });
}
