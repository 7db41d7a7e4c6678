import { type DeliveryTools, deliveryPages } from "./delivery-routes.ts";
import type { Statement } from "./statement.ts";
import { createBeside } from "../../../app/dashboard/elements/beside-page.ts";
import type { PageGroup } from "../../../app/dashboard/page-group.ts";
import { listSecretOverviews } from "../../../core/receiver/list-secrets.ts";
import type { Runtime } from "../../../app/runtime.ts";
import { secretsContextOf } from "../../../app/secrets-context.ts";

const spanMs = 7 * 86_400_000;

/** The pages of deliveries. */
export function deliveryPagesOf(runtime: Runtime): PageGroup {
  return deliveryPages({
    secrets: async (db, quietHours) => listSecretOverviews(await secretsContextOf(runtime, db), quietHours),
    statement: keptStatement(runtime),
  });
}

/** The delivery statement, which takes long on a large database. */
function keptStatement({ ask, config, log }: Runtime): DeliveryTools["statement"] {
  const { timeZone } = config;
  const read = ask.deliveriesBetween;
  if (read === undefined) return null;
  const failed = "the delivery statement could not be computed";
  const beside = createBeside<Statement>({ log, waitsMs: 500, failed });
  return (db, now) =>
    beside(now, async () => {
      const from = new Date(now.getTime() - spanMs);
      return { from, until: now, ...(await read(db, { from, until: now, timeZone })) };
    });
}
