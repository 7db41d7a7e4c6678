import type { Knex } from "knex";
import type { Log } from "../platform/log.ts";
import { inTransaction } from "../platform/transaction.ts";
import { clearOthers } from "./conditions.ts";
import type { Condition, End } from "./rules/condition.ts";
import type { AlertDesk } from "./desk.ts";
import { findBrokenIdentities, findEndpointProblems } from "./facts/findings.ts";
import { describedOrNamed, raiseIsolated } from "./isolated-alerts.ts";
import { describedEnd, undescribedKey } from "./rules/undescribed.ts";
import {
  driftEnd,
  endpointCondition,
  endpointEnd,
  identityCondition,
  identityEnd,
  incompleteEnd,
  runConditions,
} from "./rules/reconciliation.ts";
import type { RunOutcome } from "./rules/reconciliation.ts";

/** Conditions of one kind, and the earlier ones that end where they no longer hold. */
interface Part {
  name: string;
  find(): Promise<Condition[]>;
  ends: readonly { prefix: string; end: End }[];
}

/**
 * Tells how a run ended, and brings the alerts on identities and the endpoint up to its findings. A run that answers for
 * everything speaks for the earlier ones as well: their alerts end. What cannot be described gets an alert that says so,
 * and fails neither the run nor the other alerts. Opens its own transactions; idempotent.
 */
export async function assessRun(
  deps: { db: Knex; log: Log },
  desk: AlertDesk,
  run: RunOutcome,
): Promise<void> {
  const at = desk.serviceClock.now();
  for (const part of partsOf(deps.db, desk, run, at)) {
    const named = {
      resource: part.name,
      id: `run ${run.id}`,
      orderNumber: null,
      money: null,
      command: "npx tallyhook findings list",
    };
    await describedOrNamed(deps, desk, named, async () => {
      const conditions = await part.find();
      const areAllDescribed = await raiseIsolated(deps, desk, conditions, named);
      if (run.kind === "range") return;
      const keep = conditions.map(({ key }) => key);
      const ends = areAllDescribed ? [...part.ends, describedAgain(part)] : part.ends;
      await inTransaction(deps.db, async (trx) => {
        for (const { prefix, end } of ends) {
          await clearOthers(trx, desk, { prefix, end, keep, at }, "reconciliation");
        }
      });
    });
  }
}

const describedAgain = ({ name }: Part) => ({
  prefix: undescribedKey(name, ""),
  end: describedEnd,
});

function partsOf(db: Knex, desk: AlertDesk, run: RunOutcome, at: Date): Part[] {
  const { rules } = desk.settings;
  return [
    {
      name: "outcome",
      find: () => Promise.resolve(runConditions(rules, run, at)),
      ends: [
        { prefix: "drift:", end: driftEnd(run) },
        { prefix: "incomplete:", end: incompleteEnd(run) },
      ],
    },
    {
      name: "identities",
      find: async () =>
        (await findBrokenIdentities(db)).map((one) => identityCondition(rules, one, at)),
      ends: [{ prefix: "identity:", end: identityEnd }],
    },
    {
      name: "endpoint",
      find: async () =>
        (await findEndpointProblems(db)).map((one) => endpointCondition(rules, one, at)),
      ends: [{ prefix: "endpoint:", end: endpointEnd }],
    },
  ];
}
