import { basePart } from "../app/base-part.ts";
import type { Part } from "../app/part.ts";
import { alerts } from "../parts/alerts/part.ts";
import { browse } from "../parts/browse/part.ts";
import { forwarding } from "../parts/delivery/forward/part.ts";
import { handlers } from "../parts/delivery/handlers/part.ts";
import { delivery } from "../parts/delivery/part.ts";
import { endpoint } from "../parts/endpoint/part.ts";
import { reconciliation } from "../parts/reconcile/part.ts";
import { reports } from "../parts/reports/part.ts";
import { sandbox } from "../parts/sandbox/part.ts";

/**
 * The parts of this program, in the order in which help and doctor list them. To delete one, delete its folder and its
 * lines here (docs/extend.md).
 */
const parts: readonly Part[] = [
  browse,
  reconciliation,
  reports,
  alerts,
  delivery,
  handlers,
  forwarding,
  endpoint,
  sandbox,
];

/** The parts, and before them what is always there. */
export const allParts: readonly Part[] = [basePart, ...parts];
