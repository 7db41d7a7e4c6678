import { InvalidArgumentError } from "commander";
import { type AlertSeverity, alertSeverities } from "../../alerts/message.ts";
import { loadAlertSettings } from "../../alerts/settings.ts";
import { type AlertState, alertStates, findAlertByKey, isAlert } from "../../alerts/store.ts";
import { UsageError } from "../../platform/errors.ts";
import { nearestName } from "../../platform/nearest-name.ts";
import type { Runtime } from "../runtime.ts";
import { migratedDatabase } from "../schema.ts";

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

/** Resolves an alert's number or key to its number. Throws `UsageError` if there is no such alert. */
export async function alertId(runtime: Pick<Runtime, "db">, given: string): Promise<number> {
  const db = await migratedDatabase(runtime);
  const id = /^\d{1,15}$/.test(given) ? Number(given) : await findAlertByKey(db, given);
  if (id === null || !(await isAlert(db, id))) throw noAlert(given);
  return id;
}

export const noAlert = (given: string): UsageError =>
  new UsageError(
    `No alert has the number or key "${given}". "node src/bin/tallyhook.js alerts list --all" shows them.`,
  );
