import type { Knex } from "knex";
import { registerRecipient } from "../dispatch/plan-runs.ts";
import { startDispatch } from "../dispatch/start-dispatch.ts";
import { destinationNamed } from "./destination-name.ts";
import { type Destination, openDestinations } from "./destination.ts";
import { forwardWork } from "./forward-work.ts";
import { type ForwardSettings, guardFor, loadForwardSettings } from "./settings.ts";
import { ConfigurationError } from "../../../platform/errors.ts";
import { createDatabase, useOfKnex } from "../../../platform/postgres/pool.ts";
import type { Runtime } from "../../../app/runtime.ts";

/** Connections of its own, so that forwarding holds up no other work. */
const poolMax = 2;

/** Null where forwarding is off. Throws `ConfigurationError` for wrong settings. */
export function forwardSettings({ config }: Pick<Runtime, "config">): ForwardSettings | null {
  const { settingsFile } = config.forward;
  return settingsFile === null ? null : loadForwardSettings(settingsFile);
}

/** All destinations of this deployment. Connects to nothing. Throws `ConfigurationError`. */
export const openOwnDestinations = (
  { secrets, wallClock: clock }: Pick<Runtime, "secrets" | "wallClock">,
  settings: ForwardSettings,
): Destination[] =>
  openDestinations(settings.destinations, {
    guard: guardFor(settings),
    clock,
    secretOf: (variable) => secrets.forwardSecrets[variable] ?? null,
  });

/**
 * Forwards until the runtime ends; does nothing without settings. Each destination has its place when this resolves.
 * Throws `ConfigurationError` for wrong settings.
 */
export async function runForwarding(runtime: Runtime): Promise<void> {
  const settings = forwardSettings(runtime);
  if (settings === null) return;
  const destinations = openOwnDestinations(runtime, settings);
  const { log, random, secrets, wallClock: clock } = runtime;
  const db = createDatabase({
    url: await runtime.databaseUrl(),
    pooling: secrets.databaseDirectUrl === null ? undefined : "transaction",
    poolMax,
    applicationName: "tallyhook forward",
    log,
  });
  runtime.onClose(() => db.destroy());
  runtime.watchPool("forward", () => useOfKnex(db));
  runtime.onClose(async () => {
    await Promise.all(destinations.map((destination) => destination.close()));
  });
  const work = forwardWork({ db });
  await assertSameSources(db, destinations, work);
  for (const destination of destinations) {
    await registerRecipient(db, destination, work.sourceOf(destination));
  }
  const dispatch = startDispatch({ db, log, clock, random }, destinations, work);
  runtime.onClose(() => dispatch.close());
  log.info({ destinations: Object.keys(settings.destinations) }, "it is forwarded to destinations");
}

/** A position in one source is meaningless in another. */
async function assertSameSources(
  db: Knex,
  destinations: readonly Destination[],
  { sourceOf }: ReturnType<typeof forwardWork>,
): Promise<void> {
  const known = await db("dispatch.handlers")
    .whereIn(
      "name",
      destinations.map(({ name }) => name),
    )
    .select<{ name: string; source: string }[]>("name", "source");
  const problems = destinations.flatMap((destination) => {
    const row = known.find(({ name }) => name === destination.name);
    const wanted = sourceOf(destination).name;
    if (row === undefined || row.source === wanted) return [];
    const name = destinationNamed(destination.name);
    return [`  - destination "${name}" was sent ${row.source} so far, and is now to be sent ${wanted}.`];
  });
  if (problems.length === 0) return;
  throw new ConfigurationError(
    `Nothing can be forwarded as set up:\n${problems.join("\n")}\n` +
      "Its position is that of the other. Give it another name in FORWARD_SETTINGS_FILE.",
  );
}
