import { watchEndpoint } from "../reconcile/endpoint/watch-endpoint.ts";
import { defaultReconcileSettings } from "../reconcile/settings.ts";
import type { ReconcileSettings } from "../reconcile/settings.ts";
import type { ReconcileDeps } from "../reconcile/reconcile.ts";
import { alertDesk } from "./alerts/alert-desk.ts";
import { webhookUrl } from "./endpoint/own-endpoint.ts";
import type { Runtime } from "../runtime.ts";

/** What reconciliation needs of a runtime. The database must be migrated. */
export async function reconcileDeps(
  runtime: Runtime,
  service?: { baseUrl: string; apiKey: string },
): Promise<ReconcileDeps> {
  return {
    db: await runtime.db(),
    client: runtime.serviceClient(service),
    log: runtime.log,
    random: runtime.random,
    clock: runtime.wallClock,
    serviceClock: runtime.serviceClock,
    alerts: await alertDesk(runtime),
    watchEndpoint: (tools, run) =>
      watchEndpoint(tools, { url: webhookUrl(runtime.config.publicUrl), run }),
  };
}

export const reconcileSettings = ({ config }: Pick<Runtime, "config">): ReconcileSettings => ({
  ...defaultReconcileSettings,
  graceMs: config.reconcile.graceSeconds * 1_000,
  reportOnly: config.reconcile.reportOnly,
  timeZone: config.timeZone,
  checks: {
    identityModes: config.reconcile.identities,
  },
});
