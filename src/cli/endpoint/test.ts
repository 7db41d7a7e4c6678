import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { findEvents } from "../../inbox/queries.ts";
import { UnreachableError } from "../../platform/errors.ts";
import type { CliContext } from "../context.ts";
import { withEndpointTools } from "./at-hand.ts";
import { findOwnEndpoint } from "./own-endpoint.ts";
import type { EndpointTools } from "./secret-call.ts";

export interface TestOptions {
  /** Seconds. */
  wait: number;
}

/** The interface does not show this answer: without the event's id nothing tells which event to wait for. */
const answerSchema = z.object({ event_id: z.string() });
const everyMs = 250;

/** Has an event sent and waits for it: arrived means signed by a known secret and stored. */
export async function testOwnEndpoint(
  context: CliContext,
  id: string | undefined,
  { wait }: TestOptions,
): Promise<void> {
  const said = await withEndpointTools(context, async (tools) => {
    const endpoint = await findOwnEndpoint(tools, id);
    const { body } = await tools.client.post(
      `/webhook_endpoints/${encodeURIComponent(endpoint.id)}/test`,
      {},
      { idempotencyKey: tools.newKey() },
    );
    const event = answerSchema.safeParse(body);
    if (!event.success) {
      return `The service took the request for ${endpoint.id}, and does not say which event it sends. Look at "tallyhook events list".\n`;
    }
    if (await arrives(tools, event.data.event_id, wait)) {
      return `The test event ${event.data.event_id} arrived, verified and is stored.\n`;
    }
    throw new UnreachableError(
      `The test event ${event.data.event_id} did not arrive within ${wait} s at ${endpoint.url}. Is that address reachable for the service, does ` +
        'the receiver run, and does it know the secret ("tallyhook secrets list")?',
    );
  });
  context.stdout.write(said);
}

async function arrives(
  { db, wallClock }: Pick<EndpointTools, "db" | "wallClock">,
  eventId: string,
  waitSeconds: number,
): Promise<boolean> {
  const endMs = wallClock.now().getTime() + waitSeconds * 1_000;
  for (;;) {
    if ((await findEvents(db, eventId)).length > 0) return true;
    if (wallClock.now().getTime() >= endMs) return false;
    await sleep(everyMs);
  }
}
