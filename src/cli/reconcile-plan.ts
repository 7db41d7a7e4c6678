import Table from "cli-table3";
import { estimatePlan, makePlan } from "../reconcile/make-plan.ts";
import type { EstimatedSlice } from "../reconcile/make-plan.ts";
import { probePageSize } from "../reconcile/page-size.ts";
import type { ReconcileRequest } from "../reconcile/reconcile.ts";
import type { Runtime } from "../runtime.ts";
import type { CliContext } from "./context.ts";
import { reconcileDeps, reconcileSettings } from "./run-reconcile.ts";
import { counted } from "../platform/counted.ts";

/** Prints what a run would read, with its estimated calls. Asks the service for its page size only; changes nothing. */
export async function printPlan(
  { stdout }: Pick<CliContext, "stdout">,
  runtime: Runtime,
  {
    kind,
    rangeFrom = null,
    rangeTo = null,
  }: { kind: ReconcileRequest["kind"]; rangeFrom?: Date | null; rangeTo?: Date | null },
  { json }: { json?: boolean },
): Promise<void> {
  const { db, client } = await reconcileDeps(runtime);
  const settings = reconcileSettings(runtime);
  const { pageSize, date } = await probePageSize(
    client,
    settings.pageSizes,
    AbortSignal.timeout(60_000),
  );
  const t0 = new Date(date.getTime() - settings.graceMs);
  const slices = await makePlan(db, settings, { kind, t0, rangeFrom, rangeTo });
  const plan = await estimatePlan(db, slices, pageSize);
  const calls = plan.reduce((sum, slice) => sum + slice.calls, 0);
  if (json === true) {
    const shown = { t0, page_size: pageSize, estimated_calls: calls, slices: plan.map(sliceJson) };
    stdout.write(`${JSON.stringify(shown)}\n`);
    return;
  }
  const table = new Table({
    head: ["step", "list", "filter", "created from", "before", "rows", "calls", "why"],
    style: { head: [], border: [] },
  });
  for (const { slice, rows, calls: each } of plan) {
    const filter = Object.entries(slice.filter).map(([name, value]) => `${name}=${value}`);
    table.push([
      slice.step,
      slice.path,
      filter.join("\n"),
      shortTime(slice.createdFrom) ?? "first record",
      shortTime(slice.createdBefore) ?? "-",
      rows,
      each,
      slice.reason,
    ]);
  }
  stdout.write(
    `${table.toString()}\nPages of ${pageSize}: about ${counted(calls, "call")}, by what the mirror holds now; open items and doubtful ` +
      "objects are read by id on top. Nothing was changed.\n",
  );
}

const sliceJson = ({ slice, rows, calls }: EstimatedSlice) => ({
  step: slice.step,
  resource: slice.resource,
  path: slice.path,
  filter: slice.filter,
  direction: slice.direction,
  created_from: slice.createdFrom,
  created_before: slice.createdBefore,
  reason: slice.reason,
  rows,
  calls,
});

const shortTime = (time: string | null): string | null => time?.replace(/\.000000Z$/, "Z") ?? null;
