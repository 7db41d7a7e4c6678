import type { Knex } from "knex";
import type { PageGroup } from "../../../app/dashboard/page-group.ts";
import { createMonthWork } from "./month-work.ts";
import { reportsPages } from "./reports-pages.ts";
import { createTurns } from "./turns.ts";
import { once } from "../../../platform/once.ts";
import { createDatabase } from "../../../platform/postgres/pool.ts";
import type { Runtime } from "../../../app/runtime.ts";
import { reportsStandbyOf } from "../standby.ts";
import { takesTwo } from "../close/four-eyes.ts";

/** Limits of concurrent reports. Each may take 128 MB of the server's memory to sort, and a CPU. */
const reading = { atOnce: 2, statementTimeoutMs: 60_000, waitMs: 15_000 };
/** A month of a million orders takes minutes to close, of which one report takes twenty seconds. */
const closing = { atOnce: 1, statementTimeoutMs: 600_000, waitMs: 8_000 };

/** The pages of reports. Their pools are opened when the first report is read. */
export function reportPagesOf(runtime: Runtime): PageGroup {
  const { config, log, wallClock: clock } = runtime;
  return reportsPages({
    readingDb: once(() => openPool(runtime, reading)),
    closingDb: once(() => openPool(runtime, closing)),
    standby: reportsStandbyOf(runtime),
    region: config.networkRegion,
    fourEyes: takesTwo(config.closeFourEyes, "dashboard"),
    turns: createTurns({ clock }, reading),
    work: createMonthWork({ clock, log }, closing),
  });
}

async function openPool(runtime: Runtime, { atOnce, statementTimeoutMs }: typeof reading): Promise<Knex> {
  const { log, secrets } = runtime;
  const db = createDatabase({
    url: await runtime.databaseUrl(),
    pooling: secrets.databaseDirectUrl === null ? undefined : "transaction",
    poolMax: atOnce,
    statementTimeoutMs,
    applicationName: "tallyhook dashboard reports",
    log,
  });
  runtime.onClose(() => db.destroy());
  return db;
}
