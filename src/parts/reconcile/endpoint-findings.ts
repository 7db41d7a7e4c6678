import type { Knex } from "knex";
import type { EndpointProblem } from "../../app/answers.ts";
import { inTransaction } from "../../platform/postgres/transactions.ts";
import { type Finding, healUnseenFindings, recordFindings } from "./findings/findings.ts";

/**
 * Problems of this deployment's webhook endpoint become findings of class `endpoint`, and findings whose problem is gone
 * are healed. `date`: when the service was asked, by its clock. Idempotent; opens its own transaction.
 */
export async function recordEndpointProblems(
  db: Knex,
  { problems, date }: { problems: readonly EndpointProblem[]; date: Date },
  run: number | null,
): Promise<void> {
  const sighting = { run, seenAt: date };
  const findings = problems.map(({ code, severity, subject, says, remedy }): Finding => ({
    key: `endpoint:${code}:${subject}`,
    class: "endpoint",
    identity: null,
    severity,
    resource: "webhook_endpoint",
    objectId: subject,
    // Reconciliation reads what the endpoint failed to send. The finding says nothing of the time before it was
    // detected.
    objectAt: date.toISOString(),
    differences: [],
    amountAtRiskMinor: null,
    currency: null,
    cause: null,
    evidence: { says, remedy },
  }));
  await inTransaction(db, async (trx) => {
    await recordFindings(trx, sighting, findings);
    await healUnseenFindings(trx, sighting, { class: "endpoint" });
  });
}
