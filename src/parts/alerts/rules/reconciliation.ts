import type { RunOutcome } from "../../../app/run-listener.ts";
import type { Knex } from "knex";
import { tallyhook } from "../../../platform/command-line.ts";
import type { Log } from "../../../platform/log.ts";
import { moneyText } from "../../../platform/money.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { counted } from "../../../platform/readable-text.ts";
import type { AlertContext } from "../alert-context.ts";
import { describedOrNamed, raiseIsolated } from "../isolated-alerts.ts";
import type { AlertFact, AlertSeverity } from "../message.ts";
import { clearRule } from "../raise-conditions.ts";
import type { AlertSettings, RuleName } from "../settings.ts";
import { type End, atRiskIn } from "../condition.ts";
import type { Condition } from "../timeline.ts";
import { describedEnd, undescribedKey } from "../undescribed.ts";
import { headlineText, reconcileAfterMissedWebhooks, shortened, withoutIds } from "./wording.ts";

/** Conditions of one kind, and the earlier alerts that end where theirs no longer holds. */
interface Part {
  name: string;
  find(): Promise<Condition[]>;
  ends: readonly { rule: RuleName; prefix: string; end: End }[];
}

/**
 * Reports how a run ended, and brings the alerts about invariants and the endpoint up to its findings. A complete run
 * covers the earlier ones too, so their alerts end. A condition that cannot be described gets an alert about that, and
 * fails neither the run nor the other alerts. Opens its own transactions; idempotent.
 */
export async function assessRun(
  deps: { db: Knex; log: Log },
  alertContext: AlertContext,
  run: RunOutcome,
): Promise<void> {
  const at = alertContext.serviceClock.now();
  for (const part of partsOf(deps.db, alertContext, run, at)) {
    const named = {
      resource: part.name,
      id: `run ${run.id}`,
      orderNumber: null,
      money: null,
      command: tallyhook("findings list"),
    };
    await describedOrNamed(deps, alertContext, named, async () => {
      const conditions = await part.find();
      const areAllDescribed = await raiseIsolated(deps, alertContext, conditions, named);
      if (run.kind === "range") return;
      const keep = conditions.map(({ key }) => key);
      const ends = areAllDescribed ? [...part.ends, describedAgain(part)] : part.ends;
      await inTransaction(deps.db, async (trx) => {
        for (const { rule, prefix, end } of ends) {
          const endOf = (key: string) => (key.startsWith(prefix) && !keep.includes(key) ? end : null);
          await clearRule(trx, alertContext, { rule, at, endOf }, "reconciliation");
        }
      });
    });
  }
}

const describedAgain = ({ name }: Part) => ({
  rule: "alert_undescribed" as const,
  prefix: undescribedKey(name, ""),
  end: describedEnd,
});

function partsOf(db: Knex, alertContext: AlertContext, run: RunOutcome, at: Date): Part[] {
  const { rules } = alertContext.settings;
  return [
    {
      name: "outcome",
      find: () => Promise.resolve(runConditions(rules, run, at)),
      ends: [
        { rule: "reconcile_drift", prefix: "drift:", end: driftEnd(run) },
        { rule: "reconcile_incomplete", prefix: "incomplete:", end: incompleteEnd(run) },
      ],
    },
    {
      name: "identities",
      find: async () => (await findBrokenIdentities(db)).map((one) => identityCondition(rules, one, at)),
      ends: [{ rule: "identity_broken", prefix: "identity:", end: identityEnd }],
    },
    {
      name: "endpoint",
      find: async () => (await findEndpointProblems(db)).map((one) => endpointCondition(rules, one, at)),
      ends: [{ rule: "endpoint", prefix: "endpoint:", end: endpointEnd }],
    },
  ];
}

type Rules = AlertSettings["rules"];

function driftTitle({ id, amountAtRiskMinor }: RunOutcome, { left, healed }: { left: number; healed: number }): string {
  if (left === 0) {
    return headlineText({
      lead: `${counted(healed, "difference")} from the service healed`,
      cause: `run ${id} left none`,
    });
  }
  const sums = Object.entries(amountAtRiskMinor).map(([currency, n]) => moneyText(n, currency));
  const risk = sums.length === 0 ? "" : `, ${sums.slice(0, 2).join(" and ")} at risk`;
  return headlineText({
    lead: `${counted(left, "difference")} from the service not healed${risk}`,
    cause: `run ${id} healed ${healed}`,
  });
}

/** The conditions of a run; none where mirror and service were equal. */
export function runConditions(rules: Rules, run: RunOutcome, at: Date): Condition[] {
  const conditions: Condition[] = [];
  const { missing_there: _, ...missed } = run.healed;
  // Only a customer can be deleted, which no webhook announces: its tombstone is no sign of a lost one.
  const [healed, left] = [run.isInitialImport ? 0 : sum(missed), sum(run.left)];
  if (!run.complete) conditions.push(incomplete(rules, run, at));
  if (healed + left > 0) {
    conditions.push({
      key: `drift:${run.id}`,
      rule: "reconcile_drift",
      // Healed data is right again, but the need for healing is worth knowing.
      severity: left > 0 ? rules.reconcile_drift.severity : milder(rules.reconcile_drift.severity),
      title: driftTitle(run, { left, healed }),
      advice:
        left > 0
          ? `"${tallyhook("report exceptions")}" lists them with both values and the cause. An object that the ` +
            "service no longer knows stays there until you accept it: " +
            `"${tallyhook("findings ack ID --note WHY")}". Until then the month-end report does not pass.`
          : `The mirror is correct again. "${tallyhook("report exceptions")}" names the cause of each. If many ` +
            "webhooks were missed, check the endpoint, the receiver and the network today.",
      facts: [
        ...counts("Left", run.left),
        ...counts("Healed", missed),
        ...Object.entries(run.amountAtRiskMinor).map(([currency, amount]) => {
          return { label: "At risk", value: moneyText(amount, currency) };
        }),
      ],
      storedFacts: { run: run.id, healed, left },
      canWait: left === 0,
      at,
    });
  }
  return conditions;
}

/** The reason why a run is incomplete: its own error, else a reason from its figures. */
function whyIncomplete({ error, slices, confirmed, left, acknowledged }: RunOutcome): string {
  if (error !== null) return error;
  const { failed, pending } = slices;
  if (failed > 0) return `${counted(failed, "part")} could not be read`;
  if (pending > 0) return `${counted(pending, "part was", "parts were")} not read in time`;
  const unsettled = confirmed["unsettled"] ?? 0;
  if (unsettled > 0) return `${counted(unsettled, "object")} could not be compared in time`;
  const unreadable = (left["unreadable"] ?? 0) + (acknowledged["unreadable"] ?? 0);
  if (unreadable > 0) return `${counted(unreadable, "object")} cannot be read`;
  return "a part of history is not proved";
}

function incomplete(rules: Rules, run: RunOutcome, at: Date): Condition {
  const { failed, pending } = run.slices;
  const reason = whyIncomplete(run);
  return {
    key: `incomplete:${run.id}`,
    rule: "reconcile_incomplete",
    severity: rules.reconcile_incomplete.severity,
    title: headlineText({
      lead: `Reconciliation INCOMPLETE (run ${run.id})`,
      cause: shortened(withoutIds(reason), 60),
    }),
    advice:
      "No report passes until a run has read everything. Fix the reason first: often the service was down, or it " +
      `refused the API key ("${tallyhook("doctor")}" checks both). "${tallyhook("findings list")}" names objects ` +
      `that cannot be read. Then run "${tallyhook("reconcile")}". It resumes where the last run stopped.`,
    facts: [
      { label: "Reason", value: reason },
      { label: "Slices that failed", value: String(failed) },
      { label: "Slices not read", value: String(pending) },
    ],
    storedFacts: { run: run.id, failed, pending },
    at,
  };
}

export interface BrokenIdentity {
  name: string;
  severity: "critical" | "high" | "warning";
  breaches: number;
  amountAtRisk: readonly { currency: string; amountMinor: bigint }[];
  examples: readonly string[];
}

/** An enforced invariant that does not hold. */
export function identityCondition(rules: Rules, broken: BrokenIdentity, at: Date): Condition {
  const { name, breaches, amountAtRisk, examples } = broken;
  const risk = amountAtRisk
    .slice(0, 2)
    .map(({ currency, amountMinor }) => moneyText(amountMinor, currency))
    .join(" and ");
  const atRisk = risk === "" ? "" : `, ${risk} at risk`;
  return {
    key: `identity:${name}`,
    rule: "identity_broken",
    severity: broken.severity === "critical" ? rules.identity_broken.severity : severityOf(broken.severity),
    title: headlineText({
      lead: `${counted(breaches, "record breaks", "records break")} the invariant ${shortened(name)}${atRisk}`,
    }),
    advice:
      `"${tallyhook("report exceptions")}" lists them with the amounts. Ask the service about each: it did ` +
      "something that should not happen, such as charging twice. If your shop intends it, set the invariant to " +
      "observe or off in RECONCILE_IDENTITIES.",
    facts: [
      ...amountAtRisk.map(({ currency, amountMinor }) => {
        return { label: "At risk", value: moneyText(amountMinor, currency) };
      }),
      { label: "For example", value: examples.join(", ") },
    ],
    storedFacts: { identity: name, breaches },
    measures: {
      breaches,
      ...Object.fromEntries(amountAtRisk.map(({ currency, amountMinor }) => [atRiskIn(currency), Number(amountMinor)])),
    },
    at,
  };
}

export interface EndpointFinding {
  /** `endpoint:{problem}:{endpoint or address}` */
  key: string;
  severity: "critical" | "high" | "warning";
  says: string;
  remedy: string;
}

/** A problem of this deployment's webhook endpoint. */
export function endpointCondition(rules: Rules, finding: EndpointFinding, at: Date): Condition {
  const problem = finding.key.split(":")[1] ?? "";
  return {
    key: finding.key,
    rule: "endpoint",
    severity: finding.severity === "critical" ? rules.endpoint.severity : severityOf(finding.severity),
    title: headlineText({
      lead: endpointTitles[problem] ?? `Webhook endpoint: ${shortened(withoutIds(finding.says), 90)}`,
    }),
    advice:
      `${finding.remedy.charAt(0).toUpperCase()}${finding.remedy.slice(1)}. "${tallyhook("endpoint list")}" shows ` +
      `its state. "${tallyhook("reconcile")}" corrects the mirror where webhooks were missed.`,
    facts: [{ label: "Found", value: finding.says }],
    at,
  };
}

const endpointTitles: Readonly<Record<string, string>> = {
  not_registered: "No webhook arrives: the service has no endpoint with our address",
  registered_twice: "Webhooks arrive twice: several endpoints have our address",
  other_address: "Webhooks go to two addresses: a second endpoint was registered from here",
  disabled: "No webhook arrives: our endpoint is disabled at the service",
  not_subscribed: "Some webhooks never arrive: our endpoint is not subscribed to them",
  version_sunset: "Webhook endpoint pinned to a version that the service is retiring",
  unknown_rotation: "Webhook secret rotated elsewhere: the old one expires soon",
  secret_lost: "Newest webhook secret lost: deliveries will be refused",
  call_unfinished: "A change of our webhook endpoint was started and not finished",
};

const severityOf = (severity: "high" | "warning"): AlertSeverity => (severity === "high" ? "error" : "warning");

const milder = (severity: AlertSeverity): AlertSeverity => (severity === "info" ? "info" : "warning");

const counts = (label: string, byClass: Readonly<Record<string, number>>): AlertFact[] => {
  const parts = Object.entries(byClass).map(([name, n]) => `${name} ${n}`);
  return parts.length === 0 ? [] : [{ label, value: parts.join(", ") }];
};

const sum = (all: Readonly<Record<string, number>>): number => Object.values(all).reduce((total, n) => total + n, 0);

/** The end of the alert about differences that a later run has compared again. */
export function driftEnd({ id, complete }: { id: number; complete: boolean }): End {
  return {
    title: `Differences of an earlier run: compared again by run ${id}`,
    advice: complete
      ? `Run ${id} read everything. If it left differences, it has an alert of its own: ` +
        `"${tallyhook("alerts list --rule reconcile_drift")}". If there is none, mirror and service are equal.`
      : `Run ${id} did not read everything, so differences may remain. It has an alert of its own: ` +
        `"${tallyhook("alerts list --rule reconcile_incomplete")}".`,
  };
}

/** The end of the alert about an incomplete run, once a later one has ended. */
export function incompleteEnd({ id, complete }: { id: number; complete: boolean }): End {
  return complete
    ? {
        title: `Reconciliation complete again (run ${id})`,
        advice:
          `Everything has been read now. "${tallyhook("findings list")}" shows what is open. Nothing else is left ` +
          "to do.",
      }
    : {
        title: `A later reconciliation was INCOMPLETE too (run ${id})`,
        advice: `The alert on run ${id} has the present reason: "${tallyhook("alerts list --rule reconcile_incomplete")}".`,
      };
}

export const identityEnd: End = {
  title: "A broken invariant holds again",
  advice:
    `It no longer has an open finding. "${tallyhook("findings list")}" shows what else is open. If a customer was ` +
    "charged twice, check that the refund was paid.",
};

export const endpointEnd: End = {
  title: "Webhook endpoint: the problem is fixed",
  advice: `${reconcileAfterMissedWebhooks}.`,
};

/** The enforced invariants that do not hold, without acknowledged breaches. One statement. */
async function findBrokenIdentities(db: Knex): Promise<BrokenIdentity[]> {
  const { rows } = await db.raw<{
    rows: {
      identity: string;
      severity: BrokenIdentity["severity"];
      n: string;
      at_risk: { currency: string; amount: string }[] | null;
      examples: string[];
    }[];
  }>(
    `with open as (
       select coalesce(identity, 'without a name') as identity, severity, id, resource, object_id, currency,
              amount_at_risk_minor
       from reconcile.findings
       where class = 'identity' and state in ('open', 'reopened') and reconcile.is_enforced(class, evidence->>'mode')
     )
     select f.identity, f.severity, count(*) as n, (array_agg(concat_ws(' ', f.resource, f.object_id) order by f.id))[1:5] as examples,
       (select jsonb_agg(jsonb_build_object('currency', r.currency, 'amount', r.amount::text) order by r.currency)
        from (select o.currency, sum(o.amount_at_risk_minor) as amount from open o
              where o.identity = f.identity and o.currency is not null and o.amount_at_risk_minor is not null
              group by o.currency) r) as at_risk
     from open f group by f.identity, f.severity order by f.identity`,
  );
  return rows.map((row) => ({
    name: row.identity,
    severity: row.severity,
    breaches: Number(row.n),
    amountAtRisk: (row.at_risk ?? []).map(({ currency, amount }) => {
      return { currency, amountMinor: BigInt(amount) };
    }),
    examples: row.examples,
  }));
}

/** The problems of the endpoint as of its last check. One statement. */
async function findEndpointProblems(db: Knex): Promise<EndpointFinding[]> {
  return db("reconcile.findings")
    .where("class", "endpoint")
    .whereIn("state", ["open", "reopened"])
    .orderBy("key")
    .select<EndpointFinding[]>(
      "key",
      "severity",
      db.raw("evidence->>'says' as says"),
      db.raw("evidence->>'remedy' as remedy"),
    );
}
