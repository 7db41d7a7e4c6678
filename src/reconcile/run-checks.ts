import { ServiceError } from "../service/service-errors.ts";
import type { ConfirmDeps } from "./confirm.ts";
import { watchEndpoint } from "./endpoint/watch-endpoint.ts";
import { checkIdentities } from "./identities/check-identities.ts";
import type { Run } from "./runs.ts";
import type { ReconcileSettings } from "./settings.ts";

/**
 * What is looked at once the mirror was walked: the identities, and this deployment's endpoint. Their findings are no
 * drift. An endpoint that cannot be looked at does not make the run incomplete.
 */
export async function runChecks(
  { db, client, log, serviceClock }: ConfirmDeps,
  { checks, timeZone }: Pick<ReconcileSettings, "checks" | "timeZone">,
  { id: run, t0 }: Pick<Run, "id" | "t0">,
): Promise<void> {
  if (checks === null) return;
  const moment = { now: serviceClock.now(), asOf: t0 };
  await checkIdentities(db, moment, { modes: checks.identityModes, run, timeZone });
  try {
    await watchEndpoint({ db, client }, { url: checks.endpointUrl, run });
  } catch (err) {
    if (!(err instanceof ServiceError)) throw err;
    log.warn({ err, run }, "the webhook endpoint could not be looked at");
  }
}
