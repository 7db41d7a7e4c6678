import { UsageError } from "../../platform/errors.ts";
import { findHiddenSecrets } from "../../reconcile/endpoint/endpoint-calls.ts";
import type { CliContext } from "../context.ts";
import { withEndpointTools } from "./at-hand.ts";
import { finishOpenCall, obtainSecret } from "./obtain-secret.ts";
import type { ObtainedSecret } from "./obtain-secret.ts";
import { findOwnEndpoint } from "./own-endpoint.ts";
import type { EndpointTools } from "./secret-call.ts";

export interface RotateOptions {
  graceHours?: number;
}

/** Rotates the secret, or finishes the rotation that was interrupted: one run, one rotation. */
export async function rotateOwnSecret(
  context: CliContext,
  id: string | undefined,
  { graceHours }: RotateOptions,
): Promise<void> {
  const obtained = await withEndpointTools(context, async (tools) => {
    const finished = await finishOpenCall(tools);
    const isMeant = id === undefined || id === finished?.obtained.endpointId;
    if (finished?.call.kind === "rotate" && isMeant) return finished.obtained;
    return rotate(tools, id, graceHours);
  });
  const { endpointId, secretId, former, formerEndsAt } = obtained;
  const until = formerEndsAt === null ? "" : ` at ${formerEndsAt.toISOString()}`;
  context.stdout.write(
    `${endpointId} has a new secret, stored as ${secretId}. Running receivers use it within 5 s.\n` +
      (former === null
        ? `The former one is not known to be stored here: retire it by hand when it ends${until}.\n`
        : `The former one, ${former}, is kept and ends${until}.\n`),
  );
}

async function rotate(
  tools: EndpointTools,
  id: string | undefined,
  graceHours: number | undefined,
): Promise<ObtainedSecret> {
  const endpoint = await findOwnEndpoint(tools, id);
  const isLost = (await findHiddenSecrets(tools.db)).includes(endpoint.id);
  if (endpoint.has_pending_rotation === true && !isLost) {
    throw new UsageError(
      `A rotation of ${endpoint.id} is pending until ${endpoint.rotation_expires_at ?? "an unknown time"}: its former secret still signs. Rotate again after that.`,
    );
  }
  return obtainSecret(tools, {
    kind: "rotate",
    endpointId: endpoint.id,
    body: graceHours === undefined ? {} : { grace_period_hours: graceHours },
  });
}
