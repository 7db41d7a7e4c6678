import Table from "cli-table3";
import { tallyhook } from "../../../platform/command-line.ts";
import { type HandlerRow, mostCounted } from "../dispatch/manage-handlers.ts";
import { type OpenRunRow, mostHeldUp } from "../dispatch/open-runs.ts";
import { counted, withoutControls } from "../../../platform/readable-text.ts";

/** What tables call recipients of one kind, and what they are given. */
export interface TableWords {
  /** The first word of the commands. */
  command: string;
  /** What one of them is given: "change". */
  item: string;
  items: string;
  /** The state of one that is not defined here. */
  undefinedState: string;
  /** Errors of ours, which are no answer of the recipient, and what to do. */
  ownErrors: Readonly<Record<string, string>>;
}

/** Of a recipient, whether it is defined here; null where the definitions cannot be read. */
export type ListedRecipient = HandlerRow & { isDefined: boolean | null };

/** What `list` prints: those that have run here, and those that are defined and no process ran yet. */
export function recipientList(
  words: TableWords,
  rows: readonly ListedRecipient[],
  neverRan: readonly string[],
): string {
  const table = new Table({
    head: ["name", "state", "waiting", "dead", "done", "failed", "behind", "last done"],
    style: { head: [], border: [] },
  });
  for (const row of rows) {
    const { name, done, failed, behind, last_done_at: last } = row;
    const numbers = [countText(row.waiting), countText(row.dead), ...[done, failed, behind].map(String)];
    table.push([withoutControls(name), stateOf(words, row), ...numbers, timeText(last)]);
  }
  for (const name of neverRan) table.push([name, "never ran", "-", "-", "-", "-", "-", "-"]);
  return [`${table.toString()}\n`, ...rows.flatMap((row) => notesOn(words, row))].join("");
}

/** A count that was not counted further than `mostCounted`. */
export const countText = (n: number): string => (n < mostCounted ? String(n) : `${mostCounted}+`);

const timeText = (time: Date | null): string => time?.toISOString() ?? "-";

const pausedStates = {
  person: "paused",
  failures: "paused: all fail",
  subscriber: "paused: refused",
} as const;

function stateOf({ undefinedState }: TableWords, row: ListedRecipient): string {
  if (row.paused_by !== null) return pausedStates[row.paused_by];
  return row.isDefined === false ? undefinedState : row.isDefined === null ? "unknown" : "on";
}

function notesOn({ command, item, items }: TableWords, row: ListedRecipient): string[] {
  const { dead, paused_by: pausedBy, pause_reason: reason } = row;
  const shown = withoutControls(row.name);
  return [
    ...(dead === 0
      ? []
      : [
          `${shown}: ${counted(countText(dead), `dead ${item} holds`, `dead ${items} hold`)} up the later ones of ` +
            `the same object. "${tallyhook(`${command} show ${shown}`)}" lists them; "retry" or "skip" frees them.\n`,
        ]),
    ...(pausedBy === null ? [] : [`${shown} is paused: ${withoutControls(reason ?? "")}\n`]),
  ];
}

/** What `show` prints of a recipient, and of what it has not done and whose turn it is. */
export function recipientPage(words: TableWords, row: HandlerRow, runs: readonly OpenRunRow[]): string {
  const lines = Object.entries(row).map(([field, value]) => {
    const isCount = field === "waiting" || field === "dead";
    const text =
      value instanceof Date ? value.toISOString() : isCount ? countText(Number(value)) : String(value ?? "-");
    return `${field.padEnd(16)} ${withoutControls(text)}\n`;
  });
  if (runs.length === 0) return lines.join("");
  const table = new Table({
    head: [words.item, "kind", "object", "state", "attempts", "error", "next", "holds up"],
    style: { head: [], border: [] },
  });
  for (const each of runs) table.push(runRow(each));
  return [...lines, `${table.toString()}\n`, ...errorNotes(words, runs)].join("");
}

const runRow = (run: OpenRunRow): string[] => [
  String(run.seq),
  withoutControls(run.kind),
  withoutControls(run.id),
  run.is_running ? "running" : run.state,
  run.postponed === 0 ? String(run.attempts) : `${run.attempts}, put off ${run.postponed} times`,
  withoutControls(run.error ?? "-"),
  timeText(run.due_at),
  run.holds_up < mostHeldUp ? String(run.holds_up) : `${mostHeldUp}+`,
];

function errorNotes({ ownErrors }: TableWords, runs: readonly OpenRunRow[]): string[] {
  const errors = new Set(runs.map(({ error }) => error ?? ""));
  return Object.entries(ownErrors).flatMap(([error, says]) => (errors.has(error) ? [`${error}: ${says}.\n`] : []));
}
