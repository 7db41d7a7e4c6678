import type { Condition } from "./condition.ts";
import { atRiskIn } from "./condition.ts";
import type { AlertFact, AlertSeverity } from "../message.ts";
import { moneyText } from "../../platform/money.ts";
import type { AlertSettings } from "../settings.ts";

type Rules = AlertSettings["rules"];

/** How a run of reconciliation ended, as far as alerts tell it. */
export interface RunOutcome {
  id: number;
  kind: "nightly" | "full" | "range" | "import";
  /** The mirror was empty: what it healed was its own filling. */
  firstFill: boolean;
  complete: boolean;
  error: string | null;
  /** Findings of drift by class: healed by this run, and open now. */
  healed: Readonly<Record<string, number>>;
  left: Readonly<Record<string, number>>;
  amountAtRiskMinor: Readonly<Record<string, number>>;
  slices: { failed: number; pending: number };
}

/** What a run says of itself; nothing where mirror and service were equal. Pure. */
export function runConditions(rules: Rules, run: RunOutcome, at: Date): Condition[] {
  const conditions: Condition[] = [];
  const [healed, left] = [run.firstFill ? 0 : sum(run.healed), sum(run.left)];
  if (!run.complete) conditions.push(incomplete(rules, run, at));
  if (healed + left > 0) {
    conditions.push({
      key: `drift:${run.id}`,
      rule: "reconcile_drift",
      // What is healed is right again; that it had to be is worth knowing.
      severity: left > 0 ? rules.reconcile_drift.severity : milder(rules.reconcile_drift.severity),
      title:
        left > 0
          ? `Mirror and service differ: ${left} left, ${healed} healed by run ${run.id}`
          : `Run ${run.id} found and healed ${healed} ${healed === 1 ? "difference" : "differences"}`,
      advice:
        left > 0
          ? "Look at what is left: npx tallyhook report exceptions. An object that the service no longer knows stays until somebody acknowledges its finding."
          : "The mirror is right again. Look at the causes in reconcile.findings: many missed webhooks mean that the endpoint, " +
            "the receiver or the network dropped deliveries.",
      facts: [
        ...counts("Left", run.left),
        ...counts("Healed", run.healed),
        ...Object.entries(run.amountAtRiskMinor).map(([currency, amount]) => {
          return { label: "At risk", value: moneyText(amount, currency) };
        }),
      ],
      kept: { run: run.id, healed, left },
      at,
    });
  }
  return conditions;
}

function incomplete(rules: Rules, run: RunOutcome, at: Date): Condition {
  const { failed, pending } = run.slices;
  return {
    key: `incomplete:${run.id}`,
    rule: "reconcile_incomplete",
    severity: rules.reconcile_incomplete.severity,
    title: `Reconciliation is INCOMPLETE: run ${run.id} left something out`,
    advice:
      'Nothing is said of the whole until a run is complete. Mend the cause and run "npx tallyhook reconcile": it goes on ' +
      "where it stopped.",
    facts: [
      { label: "Reason", value: run.error ?? "a part of history was not read within its time" },
      { label: "Slices that failed", value: String(failed) },
      { label: "Slices not read", value: String(pending) },
    ],
    kept: { run: run.id, failed, pending },
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

/** An enforced identity that does not hold. Pure. */
export function identityCondition(rules: Rules, broken: BrokenIdentity, at: Date): Condition {
  const { name, breaches, amountAtRisk, examples } = broken;
  return {
    key: `identity:${name}`,
    rule: "identity_broken",
    severity:
      broken.severity === "critical" ? rules.identity_broken.severity : severityOf(broken.severity),
    title: `The identity ${name} does not hold: ${breaches} ${breaches === 1 ? "breach" : "breaches"}`,
    advice:
      "Either the service did something it should not (ask it about the objects), or a rule of this shop is not what the identity " +
      "assumes (RECONCILE_IDENTITIES). npx tallyhook report exceptions lists all.",
    facts: [
      ...amountAtRisk.map(({ currency, amountMinor }) => {
        return { label: "At risk", value: moneyText(amountMinor, currency) };
      }),
      { label: "Such as", value: examples.join(", ") },
    ],
    kept: { identity: name, breaches },
    measures: {
      breaches,
      ...Object.fromEntries(
        amountAtRisk.map(({ currency, amountMinor }) => [atRiskIn(currency), amountMinor]),
      ),
    },
    at,
  };
}

export interface EndpointFinding {
  key: string;
  severity: "critical" | "high" | "warning";
  says: string;
  remedy: string;
}

/** What is wrong with this deployment's webhook endpoint. Pure. */
export function endpointCondition(rules: Rules, finding: EndpointFinding, at: Date): Condition {
  return {
    key: finding.key,
    rule: "endpoint",
    severity:
      finding.severity === "critical" ? rules.endpoint.severity : severityOf(finding.severity),
    title: finding.says,
    advice: `${finding.remedy.charAt(0).toUpperCase()}${finding.remedy.slice(1)}.`,
    facts: [],
    at,
  };
}

const severityOf = (severity: "high" | "warning"): AlertSeverity =>
  severity === "high" ? "error" : "warning";

const milder = (severity: AlertSeverity): AlertSeverity =>
  severity === "info" ? "info" : "warning";

const counts = (label: string, byClass: Readonly<Record<string, number>>): AlertFact[] => {
  const parts = Object.entries(byClass).map(([name, n]) => `${name} ${n}`);
  return parts.length === 0 ? [] : [{ label, value: parts.join(", ") }];
};

const sum = (all: Readonly<Record<string, number>>): number =>
  Object.values(all).reduce((total, n) => total + n, 0);
