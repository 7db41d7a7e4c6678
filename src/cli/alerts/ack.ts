import { acknowledgeAlert } from "../../alerts/actions.ts";
import { UsageError } from "../../platform/errors.ts";
import { personAtWork } from "../acting-person.ts";
import type { CliContext } from "../context.ts";
import { alertId, noAlert } from "./show.ts";

export interface AckOptions {
  by?: string;
  note?: string;
  json?: boolean;
}

export async function acknowledge(
  context: CliContext,
  given: string,
  { by = personAtWork(context.user()), note, json }: AckOptions,
): Promise<void> {
  const { id, outcome } = await context.withRuntime(
    "alerts",
    async (runtime) => {
      const found = await alertId(runtime, given);
      const deps = { db: await runtime.db(), clock: runtime.wallClock };
      const done = await acknowledgeAlert(deps, { id: found, by, note: note ?? null });
      return { id: found, outcome: done };
    },
    { logLevel: "warn" },
  );
  if (outcome === "unknown") throw noAlert(given);
  if (outcome === "resolved") {
    throw new UsageError(`The alert ${id} is resolved: there is nothing to acknowledge.`);
  }
  if (json === true) context.stdout.write(`${JSON.stringify({ id, outcome })}\n`);
  else {
    context.stdout.write(
      outcome === "already"
        ? `The alert ${id} was acknowledged before.\n`
        : `${by} has the alert ${id}.\n`,
    );
  }
}
