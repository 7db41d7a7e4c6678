import { tallyhook } from "../../../platform/command-line.ts";
import { cellsText, tableText, type Columns } from "../../../app/cli/table.ts";
import { type HandlerRow, mostCounted } from "../dispatch/manage-handlers.ts";
import { type OpenRunRow, mostHeldUp } from "../dispatch/open-runs.ts";
import { counted, withoutControls } from "../../../platform/readable-text.ts";

/** The words that tables use for recipients of one kind, and for their items. */
export interface TableWords {
  /** The first word of the commands. */
  command: string;
  /** The name of one item: "change". */
  item: string;
  items: string;
  /** The state of one that is not defined here. */
  undefinedState: string;
  /** Errors of ours, which are no answer of the recipient, and what to do. */
  ownErrors: Readonly<Record<string, string>>;
}

/** `isDefined`: whether the recipient is defined here; null where the definitions cannot be read. */
export type ListedRecipient = HandlerRow & { isDefined: boolean | null };

/** The output of `list`: recipients that have run here, and defined ones that have not run yet. */
export function recipientList(
  words: TableWords,
  rows: readonly ListedRecipient[],
  neverRan: readonly string[],
): string {
  const head = ["name", "state", "waiting", "dead", "done", "failed", "behind", "last done"];
  const ran = rows.map((row) => {
    const { name, waiting, dead, done, failed, behind, last_done_at: last } = row;
    return [name, stateOf(words, row), countText(waiting), countText(dead), done, failed, behind, last];
  });
  const others = neverRan.map((name) => [name, "never ran", null, null, null, null, null, null]);
  return [cellsText({ head, rows: [...ran, ...others] }), ...rows.flatMap((row) => notesOn(words, row))].join("");
}

/** A count that was not counted further than `mostCounted`. */
export const countText = (n: number): string => (n < mostCounted ? String(n) : `${mostCounted}+`);

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

/** The output of `show`: a recipient, its open runs, and the next step of each. */
export function recipientPage(words: TableWords, row: HandlerRow, runs: readonly OpenRunRow[]): string {
  const lines = Object.entries(row).map(([field, value]) => {
    const isCount = field === "waiting" || field === "dead";
    const text =
      value instanceof Date ? value.toISOString() : isCount ? countText(Number(value)) : String(value ?? "-");
    return `${field.padEnd(16)} ${withoutControls(text)}\n`;
  });
  if (runs.length === 0) return lines.join("");
  return [...lines, tableText(runColumns(words), runs), ...errorNotes(words, runs)].join("");
}

const runColumns = ({ item }: TableWords): Columns<OpenRunRow> => ({
  [item]: ({ seq }) => seq,
  kind: ({ kind }) => kind,
  object: ({ id }) => id,
  state: (run) => (run.is_running ? "running" : run.state),
  attempts: ({ attempts, postponed }) => (postponed === 0 ? attempts : `${attempts}, put off ${postponed} times`),
  error: ({ error }) => error,
  next: (run) => run.due_at,
  "holds up": (run) => (run.holds_up < mostHeldUp ? run.holds_up : `${mostHeldUp}+`),
});

function errorNotes({ ownErrors }: TableWords, runs: readonly OpenRunRow[]): string[] {
  const errors = new Set(runs.map(({ error }) => error ?? ""));
  return Object.entries(ownErrors).flatMap(([error, says]) => (errors.has(error) ? [`${error}: ${says}.\n`] : []));
}
