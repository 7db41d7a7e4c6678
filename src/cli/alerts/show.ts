import { findAlert, findAlertByKey, isAlert } from "../../alerts/queries.ts";
import type { AlertDetails } from "../../alerts/queries.ts";
import { UsageError } from "../../platform/errors.ts";
import { visible } from "../../platform/visible-text.ts";
import { migratedDatabase } from "../../runtime.ts";
import type { Runtime } from "../../runtime.ts";
import type { CliContext } from "../context.ts";
import { titleOf } from "./list.ts";

export async function printAlert(
  context: CliContext,
  given: string,
  { json }: { json?: boolean },
): Promise<void> {
  const alert = await context.withRuntime(
    "alerts",
    async (runtime) => findAlert(await runtime.db(), await alertId(runtime, given)),
    { logLevel: "warn" },
  );
  if (alert === null) throw noAlert(given);
  context.stdout.write(json === true ? `${JSON.stringify(alert)}\n` : textOf(alert));
}

/** The number of an alert that is given by its number or its key. Throws `UsageError` where there is none. */
export async function alertId(runtime: Pick<Runtime, "db">, given: string): Promise<number> {
  const db = await migratedDatabase(runtime);
  const id = /^\d{1,15}$/.test(given) ? Number(given) : await findAlertByKey(db, given);
  if (id === null || !(await isAlert(db, id))) throw noAlert(given);
  return id;
}

export const noAlert = (given: string): UsageError =>
  new UsageError(
    `No alert has the number or key "${given}". "npx tallyhook alerts list --all" shows them.`,
  );

function textOf(details: AlertDetails): string {
  const { history, messages, digests, stormListings, facts, ...alert } = details;
  const lines = [visible(titleOf({ facts, key: alert.key })), ""];
  for (const [name, value] of Object.entries({ ...alert, ...facts })) {
    if (name === "title" || name === "advice" || value === null) continue;
    const text = value instanceof Date ? value.toISOString() : String(value);
    lines.push(`${name.padEnd(18)} ${visible(text)}`);
  }
  const advice = facts["advice"];
  if (typeof advice === "string" && advice !== "") lines.push("", `What to do: ${visible(advice)}`);
  lines.push("", "Life");
  for (const { at, change, stage, found_by: foundBy } of history) {
    lines.push(`  ${at.toISOString()}  ${change.padEnd(12)} ${stage.padEnd(16)} ${foundBy}`);
  }
  const isTold = messages.length + digests.length + stormListings.length > 0;
  lines.push("", isTold ? "Messages" : "No message was queued.");
  for (const { channel, stage, told_at: at } of digests) {
    const when = at === null ? "waits for the next list" : `listed ${at.toISOString()}`;
    lines.push(`  ${channel.padEnd(16)} ${"digest".padEnd(12)} ${stage.padEnd(16)} ${when}`);
  }
  for (const { channel, stage, action, state, attempts, last_error: error } of messages) {
    const failure = error === null ? "" : `: ${visible(error)}`;
    lines.push(
      `  ${channel.padEnd(16)} ${action.padEnd(12)} ${stage.padEnd(16)} ${state}, attempts ${attempts}${failure}`,
    );
  }
  for (const { channel, stage, told_how: how, storm_id: storm, told_at: at } of stormListings) {
    const when = at === null ? "not yet" : at.toISOString();
    lines.push(
      `  ${channel.padEnd(16)} ${"in a storm".padEnd(12)} ${stage.padEnd(16)} ${how} (alert ${storm}), ${when}`,
    );
  }
  return `${lines.join("\n")}\n`;
}
