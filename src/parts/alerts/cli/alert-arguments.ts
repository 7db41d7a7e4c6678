import { InvalidArgumentError } from "commander";
import { type AlertSeverity, alertSeverities } from "../message.ts";
import { alertNamed } from "../acts.ts";
import { ruleNames } from "../settings.ts";
import { type AlertState, alertStates, isAlert } from "../store.ts";
import { UsageError } from "../../../platform/errors.ts";
import { nearestName } from "../../../platform/nearest-name.ts";
import { alertSettings } from "../run-alerts.ts";
import type { Runtime } from "../../../app/runtime.ts";
import { migratedDatabase } from "../../../main/schema.ts";

export const parseState = (text: string): AlertState => oneOf("state", alertStates, text);
export const parseSeverity = (text: string): AlertSeverity => oneOf("severity", alertSeverities, text);
export const parseRule = (text: string): string => oneOf("rule", ruleNames, text);

function oneOf<T extends string>(what: string, known: readonly T[], text: string): T {
  const found = known.find((each) => each === text);
  if (found !== undefined) return found;
  const nearest = nearestName(text, known);
  const hint = nearest === null ? `Use one of ${known.join(", ")}.` : `Did you mean ${nearest}?`;
  throw new InvalidArgumentError(`There is no ${what} "${text}". ${hint}`);
}

export const alertDeps = async (runtime: Runtime) => ({
  db: await migratedDatabase(runtime),
  clock: runtime.wallClock,
  settings: () => alertSettings(runtime),
});

/** Shown for an unknown alert. */
export const listHint = { unknown: '"node src/bin/tallyhook.js alerts list --all" shows them.' };

/** Resolves an alert's number or key to its number. Throws `UsageError` if there is no such alert. */
export async function alertId(runtime: Pick<Runtime, "db">, given: string): Promise<number> {
  const db = await migratedDatabase(runtime);
  const id = await alertNamed(db, given);
  if (id === null || !(await isAlert(db, id))) throw noAlert(given);
  return id;
}

export const noAlert = (given: string): UsageError =>
  new UsageError(`There is no alert "${given}". ${listHint.unknown}`);
