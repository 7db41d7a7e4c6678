import type { Knex } from "knex";
import type { AlertDesk } from "../alerts/desk.ts";
import type { Log } from "../platform/log.ts";
import type { Random } from "../platform/random.ts";
import type { ServiceClient } from "../service/client.ts";

/** What reading wanted objects depends on. */
export interface FetchDeps {
  db: Knex;
  client: Pick<ServiceClient, "get" | "listPages">;
  log: Log;
  random: Random;
  alerts: AlertDesk;
  /** How far apart two answers "unknown" must be to mean that a customer was deleted. */
  missingGraceMs: number;
}
