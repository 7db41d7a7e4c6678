import { TallyhookError, UsageError } from "../../platform/errors.ts";
import { assertSecretRoom } from "../../receiver/secrets-store.ts";
import { beginCall, findOpenCall } from "../../reconcile/endpoint/endpoint-calls.ts";
import type { EndpointCall } from "../../reconcile/endpoint/endpoint-calls.ts";
import { ServiceRefusedError } from "../../service/service-errors.ts";
import { makeSecretCall } from "./secret-call.ts";
import type { EndpointTools, SecretCallResult } from "./secret-call.ts";

export type ObtainedSecret = Extract<SecretCallResult, { outcome: "done" }>;

/** Finishes what a crash has left; null when nothing was. Throws a `ServiceError`. */
export async function finishOpenCall(
  tools: EndpointTools,
): Promise<{ call: EndpointCall; obtained: ObtainedSecret } | null> {
  const call = await findOpenCall(tools.db);
  if (call === null) return null;
  return { call, obtained: await make(tools, call, { isRepeat: true }) };
}

/**
 * Begins a call, makes it, and stores its secret. Throws a `ServiceError`, or `UsageError` beside another call and where
 * there are too many secrets: before the service is asked, which shows a secret once only.
 */
export async function obtainSecret(
  tools: EndpointTools,
  wanted: Pick<EndpointCall, "kind" | "endpointId" | "body">,
): Promise<ObtainedSecret> {
  await assertSecretRoom(tools.db, tools.wallClock.now());
  return make(tools, await begin(tools, wanted), { isRepeat: false });
}

async function begin(
  tools: EndpointTools,
  wanted: Pick<EndpointCall, "kind" | "endpointId" | "body">,
): Promise<EndpointCall> {
  const call = { ...wanted, idempotencyKey: tools.newKey() };
  if (!(await beginCall(tools.db, call))) {
    throw new UsageError("Another endpoint command has just begun. Run this one again after it.");
  }
  return { ...call, createdAt: tools.wallClock.now() };
}

/** The secret of a call; where the service does not show it any more, that of another rotation. */
async function make(
  tools: EndpointTools,
  call: EndpointCall,
  how: { isRepeat: boolean },
): Promise<ObtainedSecret> {
  const result = await makeSecretCall(tools, call, how);
  if (result.outcome === "done") return result;
  const { endpointId } = result;
  const again = await begin(tools, {
    kind: "rotate",
    endpointId,
    body: call.kind === "rotate" ? call.body : {},
  });
  try {
    const second = await makeSecretCall(tools, again, { isRepeat: false });
    if (second.outcome === "done") return second;
  } catch (error) {
    if (!(error instanceof ServiceRefusedError)) throw error;
    throw new TallyhookError(
      `The secret of ${endpointId} was lost, since the service shows it once only, and it refuses to rotate again now ` +
        `(${error.code ?? error.status}). The former secret is kept. Run "tallyhook endpoint rotate ${endpointId}" again when the ` +
        'grace period is over; "tallyhook endpoint list" shows when.',
      { cause: error },
    );
  }
  throw new TallyhookError(
    `The service shows no secret of ${endpointId}, not even for a new rotation. Rotate it in the merchant portal, then run "tallyhook secrets add".`,
  );
}
