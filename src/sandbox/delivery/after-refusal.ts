import type { AttemptKind, Delivery } from "./delivery.ts";

/** What follows an attempt that was not accepted. */
export type AfterRefusal =
  | { step: "nothing" }
  /** A good copy follows a corrupted one at once. */
  | { step: "soon" }
  | { step: "lost" }
  | { step: "failed" }
  | { step: "later"; waitSeconds: number };

/** A duplicate has no retries of its own; a corrupt copy follows its fault's rule; the rest the retry schedule. */
export function afterRefusal(
  { status, failures }: Pick<Delivery, "status" | "failures">,
  kind: AttemptKind,
  rules: { corrupt: "soon" | "schedule" | "never"; retrySeconds: readonly number[] },
): AfterRefusal {
  if (kind === "duplicate" || status !== "pending") return { step: "nothing" };
  if (kind === "corrupt" && rules.corrupt === "soon") return { step: "soon" };
  if (kind === "corrupt" && rules.corrupt === "never") return { step: "lost" };
  const waitSeconds = rules.retrySeconds[failures];
  return waitSeconds === undefined ? { step: "failed" } : { step: "later", waitSeconds };
}
