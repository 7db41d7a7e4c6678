import { basePart } from "../app/base-part.ts";
import type { Part } from "../app/part.ts";
import { alerts } from "../parts/alerts/part.ts";
import { browse } from "../parts/browse/part.ts";
import { forward } from "../parts/delivery/forward/part.ts";
import { handlers } from "../parts/delivery/handlers/part.ts";
import { delivery } from "../parts/delivery/part.ts";
import { endpoint } from "../parts/endpoint/part.ts";
import { reconcile } from "../parts/reconcile/part.ts";
import { reports } from "../parts/reports/part.ts";
import { sandbox } from "../parts/sandbox/part.ts";

/**
 * The parts of this program, in the order in which help and doctor list them. To delete one, delete its folder and its
 * lines here (docs/extend.md).
 */
const parts: readonly Part[] = [
  // One a line: a deleted part takes its line along.
  browse,
  reconcile,
  reports,
  alerts,
  delivery,
  handlers,
  forward,
  endpoint,
  sandbox,
];

/** The parts, and before them what is always there. */
export const allParts: readonly Part[] = [basePart, ...parts];
