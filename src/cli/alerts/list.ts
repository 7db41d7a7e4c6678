import Table from "cli-table3";
import { InvalidArgumentError } from "commander";
import { alertSeverities } from "../../alerts/message.ts";
import type { AlertSeverity } from "../../alerts/message.ts";
import { alertStates, countAlerts, listAlerts } from "../../alerts/queries.ts";
import type { AlertFilter, AlertRow, AlertState } from "../../alerts/queries.ts";
import { loadAlertSettings } from "../../alerts/settings.ts";
import { nearestName } from "../../platform/nearest-name.ts";
import { visible } from "../../platform/visible-text.ts";
import { migratedDatabase } from "../../runtime.ts";
import type { CliContext } from "../context.ts";

export interface ListOptions {
  state?: AlertState;
  all?: boolean;
  rule?: string;
  severity?: AlertSeverity;
  limit: number;
  json?: boolean;
}

export async function printAlerts(context: CliContext, options: ListOptions): Promise<void> {
  const { alerts, counts } = await context.withRuntime(
    "alerts",
    async (runtime) => {
      const db = await migratedDatabase(runtime);
      return { alerts: await listAlerts(db, filterOf(options)), counts: await countAlerts(db) };
    },
    { logLevel: "warn" },
  );
  if (options.json === true) {
    context.stdout.write(`${JSON.stringify({ alerts, counts })}\n`);
    return;
  }
  const table = new Table({
    head: ["id", "severity", "state", "stage", "opened", "what"],
    style: { head: [], border: [] },
    wordWrap: true,
  });
  for (const alert of alerts) table.push(rowOf(alert));
  const totals = alertStates.map((state) => `${state} ${counts[state] ?? 0}`);
  context.stdout.write(`${table.toString()}\nAll alerts: ${totals.join(", ")}.\n`);
}

function filterOf({ state, all, rule, severity, limit }: ListOptions): AlertFilter {
  const states = all === true ? alertStates : state === undefined ? undefined : [state];
  return {
    limit,
    ...(states === undefined ? {} : { states }),
    ...(rule === undefined ? {} : { rule }),
    ...(severity === undefined ? {} : { severity }),
  };
}

const rowOf = (alert: AlertRow): string[] => [
  alert.id,
  alert.severity,
  alert.state,
  alert.stage,
  alert.opened_at.toISOString(),
  visible(titleOf(alert)),
];

export const titleOf = ({ facts, key }: Pick<AlertRow, "facts" | "key">): string =>
  typeof facts["title"] === "string" ? facts["title"] : key;

export const parseState = (text: string): AlertState => oneOf("state", alertStates, text);
export const parseSeverity = (text: string): AlertSeverity =>
  oneOf("severity", alertSeverities, text);
export const parseRule = (text: string): string =>
  oneOf("rule", Object.keys(loadAlertSettings(null).rules), text);

function oneOf<T extends string>(what: string, known: readonly T[], text: string): T {
  const found = known.find((each) => each === text);
  if (found !== undefined) return found;
  const nearest = nearestName(text, known);
  const hint = nearest === null ? `Use one of ${known.join(", ")}.` : `Did you mean ${nearest}?`;
  throw new InvalidArgumentError(`There is no ${what} "${text}". ${hint}`);
}
