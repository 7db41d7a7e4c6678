import Table from "cli-table3";
import {
  type HandlerRow,
  type OpenRunRow,
  mostCounted,
  mostHeldUp,
} from "../../dispatch/manage-handlers.ts";
import { counted, withoutControls } from "../../platform/readable-text.ts";

/** Of a handler, whether a file here has its code; null where the files cannot be read. */
export type ListedHandler = HandlerRow & { has_code: boolean | null };

/** What `handlers list` prints: those that have run here, and those that a file has and no process ran yet. Pure. */
export function handlerList(rows: readonly ListedHandler[], neverRan: readonly string[]): string {
  const table = new Table({
    head: ["name", "state", "waiting", "dead", "done", "failed", "behind", "last done"],
    style: { head: [], border: [] },
  });
  for (const row of rows) {
    const { name, done, failed, behind, last_done_at: last } = row;
    const numbers = [
      countText(row.waiting),
      countText(row.dead),
      ...[done, failed, behind].map(String),
    ];
    table.push([withoutControls(name), stateOf(row), ...numbers, last?.toISOString() ?? "-"]);
  }
  for (const name of neverRan) table.push([name, "never ran", "-", "-", "-", "-", "-", "-"]);
  return [`${table.toString()}\n`, ...rows.flatMap(notesOn)].join("");
}

/** A count that was not counted further than `mostCounted`. Pure. */
export const countText = (n: number): string => (n < mostCounted ? String(n) : `${mostCounted}+`);

const stateOf = ({ paused_by: pausedBy, has_code: hasCode }: ListedHandler): string => {
  if (pausedBy !== null) return pausedBy === "failures" ? "paused: all fail" : "paused";
  return hasCode === false ? "no code here" : hasCode === null ? "unknown" : "on";
};

function notesOn({
  name,
  dead,
  paused_by: pausedBy,
  pause_reason: reason,
}: ListedHandler): string[] {
  const shown = withoutControls(name);
  return [
    ...(dead === 0
      ? []
      : [
          `${shown}: ${counted(countText(dead), "dead change holds", "dead changes hold")} up the later ones of the same ` +
            `object. "npx tallyhook handlers show ${shown}" lists them; "retry" or "skip" frees them.\n`,
        ]),
    ...(pausedBy === null ? [] : [`${shown} is paused: ${withoutControls(reason ?? "")}\n`]),
  ];
}

/** What `handlers show` prints of a handler and of the changes whose turn it is. Pure. */
export function handlerPage(row: HandlerRow, runs: readonly OpenRunRow[]): string {
  const lines = Object.entries(row).map(([field, value]) => {
    const isCount = field === "waiting" || field === "dead";
    const text =
      value instanceof Date
        ? value.toISOString()
        : isCount
          ? countText(Number(value))
          : String(value ?? "-");
    return `${field.padEnd(16)} ${withoutControls(text)}\n`;
  });
  if (runs.length === 0) return lines.join("");
  const table = new Table({
    head: ["change", "kind", "object", "state", "attempts", "error", "next", "holds up"],
    style: { head: [], border: [] },
  });
  for (const each of runs) table.push(runRow(each));
  return [...lines, `${table.toString()}\n`, ...errorNotes(runs)].join("");
}

const runRow = (run: OpenRunRow): string[] => [
  String(run.seq),
  withoutControls(run.kind),
  withoutControls(run.id),
  run.is_running ? "running" : run.state,
  String(run.attempts),
  withoutControls(run.error ?? "-"),
  run.due_at?.toISOString() ?? "-",
  run.holds_up < mostHeldUp ? String(run.holds_up) : `${mostHeldUp}+`,
];

/** Errors of ours, which the handler did not throw, and what to do. */
const ownErrors: Readonly<Record<string, string>> = {
  ObjectNotSeen:
    "the mirror has not seen the object yet. It is read from the service by itself, within seconds as a rule. If it stays " +
    'away: "npx tallyhook doctor" says whether the service answers, "npx tallyhook reconcile" reads what is missing; then ' +
    "retry. What the service has deleted never comes: skip it",
  DeadlineExceeded:
    "the attempt took longer than deadlineMs. What it waits for does not answer, or it needs a longer deadline",
  ProcessEndedWhileItRan:
    "the process ended each time that it ran: killed, out of memory, or process.exit. The log before its restarts says why",
};

function errorNotes(runs: readonly OpenRunRow[]): string[] {
  const errors = new Set(runs.map(({ error }) => error ?? ""));
  return Object.entries(ownErrors).flatMap(([error, says]) =>
    errors.has(error) ? [`${error}: ${says}.\n`] : [],
  );
}
