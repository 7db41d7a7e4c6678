import Table from "cli-table3";
import pc from "picocolors";
import { moneyText } from "../platform/money.ts";
import type { Gap } from "../reconcile/coverage.ts";
import type { ReconcileResult } from "../reconcile/finish.ts";
import { answeredRange } from "../reconcile/plan.ts";
import { amountsAsText, sum } from "../reconcile/totals.ts";
import { counted } from "../platform/counted.ts";
import { exitCodes } from "../platform/errors.ts";

/**
 * What a run means for a script. Incomplete goes first: what was not read cannot be called equal, nor can the drift be
 * counted. Pure.
 */
export function exitCodeOf(
  { complete, totals }: Pick<ReconcileResult, "complete" | "totals">,
  { failOnDrift, strict }: { failOnDrift: boolean; strict: boolean },
): number {
  if (!complete) return exitCodes.incomplete;
  if (sum(totals.left) > 0) return exitCodes.differs;
  if (strict && sum(totals.otherFindings) > 0) return exitCodes.differs;
  return failOnDrift && sum(totals.healed) > 0 ? exitCodes.healed : exitCodes.done;
}

/**
 * Why a run whose last line says that all is equal ends with another code than 0 all the same; null where that line
 * says it. Pure.
 */
export function exitReason(
  result: Pick<ReconcileResult, "complete" | "totals">,
  options: { failOnDrift: boolean; strict: boolean },
): string | null {
  const { left, otherFindings, healed } = result.totals;
  const code = exitCodeOf(result, options);
  if (code === exitCodes.differs && sum(left) === 0) {
    const open = counted(
      sum(otherFindings),
      "open finding that is no drift",
      "open findings that are no drift",
    );
    return `exit code 3, since --strict counts ${open} (${listed(otherFindings)}). "tallyhook findings list" shows them.`;
  }
  return code === exitCodes.healed
    ? `exit code 5, since --fail-on-drift counts what was healed (${listed(healed)}).`
    : null;
}

/** One object for scripts. Money is text of minor units, as in the reports' JSON. */
export const resultJson = ({ run, totals, coverage, complete, error }: ReconcileResult) => ({
  run: run.id,
  run_key: run.runKey,
  kind: run.kind,
  t0: run.t0,
  report_only: run.reportOnly,
  complete,
  error,
  checked: sum(totals.rows),
  rows: totals.rows,
  verdicts: totals.verdicts,
  confirmed: totals.confirmed,
  healed: sum(totals.healed),
  healed_by_class: totals.healed,
  left: sum(totals.left),
  left_by_class: totals.left,
  amount_at_risk_minor: amountsAsText(totals.amountAtRiskMinor),
  acknowledged: sum(totals.acknowledged),
  other_findings: totals.otherFindings,
  coverage: { complete: coverage.complete, gaps: coverage.gaps, slices: totals.slices },
  calls: totals.calls,
});

export function printResult(out: NodeJS.WriteStream, result: ReconcileResult): void {
  const { run, totals, coverage, complete, error } = result;
  const table = new Table({ style: { head: [], border: [] } });
  const { slices, verdicts } = totals;
  table.push(
    ["run", `${run.id} (${run.kind}${run.reportOnly ? ", report only" : ""})`],
    scopeRow(run),
    ["read", `${listed(totals.rows)}; ${counted(totals.calls, "call")}`],
    ["compared", listed(verdicts)],
    ["read again by id", listed(totals.confirmed)],
    ["healed", listed(totals.healed)],
    ["left", leftText(totals)],
    ["other open findings", listed(totals.otherFindings)],
    ["slices", listed(slices)],
    ["coverage", coverage.complete ? "complete" : coverage.gaps.map(gapText).join("\n")],
  );
  out.write(`${table.toString()}\n`);
  if (error !== null) out.write(pc.red(`${error}\n`));
  out.write(verdictText(result, complete));
}

function scopeRow(run: ReconcileResult["run"]): [string, string] {
  if (run.kind !== "range") return ["everything created before", run.t0.toISOString()];
  const { from, before } = answeredRange(run);
  return ["created", `from ${from.toISOString()}, before ${before.toISOString()}`];
}

function verdictText({ run, totals }: ReconcileResult, complete: boolean): string {
  const [left, healed] = [sum(totals.left), sum(totals.healed)];
  if (!complete)
    return pc.red(
      "INCOMPLETE: not everything was read and proved, so nothing can be said of the whole.\n",
    );
  if (left > 0) {
    const differ = counted(left, "object differs", "objects differ");
    return pc.red(`DRIFT LEFT: ${differ} from the service.\n`);
  }
  const scope = run.kind === "range" ? "What was created in the range" : "The mirror";
  const accepted = sum(totals.acknowledged);
  return pc.green(
    `${scope} equals the service` +
      (accepted > 0 ? `, but for what was acknowledged (findings: ${accepted})` : "") +
      (healed > 0 ? `; healed: ${counted(healed, "difference")}.\n` : ".\n"),
  );
}

function leftText({ left, amountAtRiskMinor }: ReconcileResult["totals"]): string {
  if (sum(left) === 0) return "0";
  const amounts = Object.entries(amountAtRiskMinor).map(([currency, minor]) =>
    moneyText(minor, currency),
  );
  return `${listed(left)}; at risk: ${amounts.join(", ") || "no amount"}`;
}

const listed = (counts: Readonly<Record<string, number | undefined>>): string => {
  const parts = Object.entries(counts).filter(([, n]) => (n ?? 0) > 0);
  return parts.length === 0 ? "0" : parts.map(([name, n]) => `${name} ${n}`).join(", ");
};

const gapText = ({ resource, from, before }: Gap): string =>
  `${resource}s created ${from === null ? "" : `from ${from} `}before ${before ?? "now"} are not proved`;
