import { z } from "zod";
import { testWebhookEndpoint } from "../../core/contract/resources/webhook-endpoints.ts";
import { UsageError } from "../../platform/errors.ts";
import { findLostSecrets } from "./endpoint-calls.ts";
import { findOwnEndpoint } from "./endpoints.ts";
import {
  type EndpointTools,
  type ObtainedSecret,
  finishOpenCall,
  obtainSecret,
  withCallLock,
} from "./obtain-secret.ts";

/**
 * Rotates the secret of an endpoint, or completes an interrupted rotation. One call makes one rotation. Without an id:
 * of the only endpoint of this deployment. Throws `UsageError` where another rotation is pending or being made, and a
 * `ServiceError`.
 */
export function rotateSecret(
  tools: EndpointTools,
  id: string | undefined,
  graceHours: number | undefined,
): Promise<ObtainedSecret> {
  return withCallLock(tools, async () => {
    const finished = await finishOpenCall(tools);
    const isMeant = id === undefined || id === finished?.obtained.endpointId;
    if (finished?.call.kind === "rotate" && isMeant) return finished.obtained;
    return rotate(tools, id, graceHours);
  });
}

async function rotate(
  tools: EndpointTools,
  id: string | undefined,
  graceHours: number | undefined,
): Promise<ObtainedSecret> {
  const endpoint = await findOwnEndpoint(tools, id);
  const isLost = (await findLostSecrets(tools.db)).includes(endpoint.id);
  if (endpoint.has_pending_rotation === true && !isLost) {
    throw new UsageError(
      `A rotation of ${endpoint.id} is pending until ${endpoint.rotation_expires_at ?? "an unknown time"}: its former ` +
        'secret still signs. Rotate again after that. If its secrets are lost here: "tallyhook endpoint remove ' +
        `${endpoint.id}", then "tallyhook endpoint register".`,
    );
  }
  return obtainSecret(tools, {
    kind: "rotate",
    endpointId: endpoint.id,
    body: graceHours === undefined ? {} : { grace_period_hours: graceHours },
  });
}

/**
 * The interface does not document this answer, so it is checked: only the event's id identifies the event to wait for.
 */
const answerSchema = z.object({ event_id: z.string() });

/** Has the service send an event. Returns its id; null where the service does not name it. Throws a `ServiceError`. */
export async function sendTestEvent(
  { client, newKey }: Pick<EndpointTools, "client" | "newKey">,
  endpointId: string,
): Promise<string | null> {
  const { body } = await client.send(
    testWebhookEndpoint,
    { params: { id: endpointId }, body: {} },
    { idempotencyKey: newKey() },
  );
  const event = answerSchema.safeParse(body);
  return event.success ? event.data.event_id : null;
}
