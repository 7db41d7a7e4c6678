import { createHash } from "node:crypto";
import { ServiceRefusedError } from "../../core/client/service-errors.ts";
import {
  type WebhookEndpoint,
  deleteWebhookEndpoint,
  testWebhookEndpoint,
} from "../../core/contract/resources/webhook-endpoints.ts";
import { type Act, type ActCall, ActRefused, outdated, recordOf } from "../../app/people/act.ts";
import { type Field, optional, reference, text, wholeNumber, withDefault } from "../../app/people/fields.ts";
import { ConfigurationError } from "../../platform/errors.ts";
import { longLine } from "../../platform/free-text.ts";
import { inTransaction } from "../../platform/postgres/transactions.ts";
import { findLostSecrets, findOpenCall } from "./endpoint-calls.ts";
import {
  findOwnEndpoint,
  forgetEndpoint,
  isSameUrl,
  listEndpoints,
  listKnownEndpoints,
  unknownEndpoint,
} from "./endpoints.ts";
import {
  type EndpointTools,
  type ObtainedSecret,
  finishOpenCall,
  obtainSecret,
  withCallLock,
} from "./obtain-secret.ts";
import { z } from "zod";
import { UsageError } from "../../platform/errors.ts";

/** The longest time that a former secret signs together with the new one. */
const mostGraceHours = 24 * 30;

type ReadingTools = Omit<EndpointTools, "encryption">;

const endpointField: Field<string | null> = optional(reference);

/** The service signs with a new secret, which is stored. An interrupted rotation is completed instead. */
export const rotating: Act<
  /** Without `encryption` a secret cannot be stored. */
  ReadingTools & { encryption: EndpointTools["encryption"] | null },
  { endpoint: string | null; graceHours: number | null },
  ObtainedSecret
> = {
  name: "endpoint.rotated",
  permission: "endpoint:write",
  fields: {
    endpoint: endpointField,
    graceHours: optional(wholeNumber(1, mostGraceHours)),
  },
  async run({ encryption, ...tools }, call) {
    const { endpoint, graceHours } = call.input;
    await assertAsShown(tools, call);
    if (encryption === null) {
      throw new ActRefused(
        "hindered",
        "TALLYHOOK_ENCRYPTION_KEY is not set, so the new secret could not be stored. Nothing was done. Set it first.",
      );
    }
    const recorded = { ...tools, encryption, record: recordStored(call) };
    return rotateSecret(recorded, endpoint ?? undefined, graceHours ?? undefined);
  },
};

const webUrl: Field<string> = {
  read: (typed) => (/^https?:\/\//i.test(typed) && typed.length <= 2_000 && URL.canParse(typed) ? typed : undefined),
  wanted: "the whole address, such as https://hooks.example.com/webhooks",
  longest: 2_000,
};

const eventTypes: Field<string[]> = {
  read(typed) {
    const types = typed.split(",").map((type) => type.trim());
    return types.length <= 100 && types.every((type) => type !== "" && type.length <= 100) ? types : undefined;
  },
  wanted: "types separated by commas, such as order.created,order.refunded; * stands for all",
};

interface Registration {
  /** Null: the one that the settings give. */
  url: string | null;
  events: string[];
  apiVersion: string | null;
  description: string | null;
}

interface Registered extends ObtainedSecret {
  /** Other endpoints of the account that get each event as well, as one that an earlier deployment left behind. */
  others: { endpoint: WebhookEndpoint; isKnown: boolean }[];
}

/** Creates the endpoint at the service, once: an interrupted registration is completed, and a second one refused. */
export const registering: Act<EndpointTools, Registration, Registered> = {
  name: "endpoint.registered",
  permission: "endpoint:write",
  fields: {
    url: optional(webUrl),
    events: withDefault(eventTypes, ["*"]),
    apiVersion: optional(reference),
    description: optional(text(longLine)),
  },
  run(given, call) {
    const tools = { ...given, record: recordStored(call) };
    return withCallLock(tools, async () => {
      const finished = await finishOpenCall(tools);
      const obtained = finished?.call.kind === "register" ? finished.obtained : await register(tools, call.input);
      return { ...obtained, others: await otherEndpoints(tools, obtained.endpointId) };
    });
  },
};

async function register(
  tools: EndpointTools,
  { url: given, events, apiVersion, description }: Registration,
): Promise<ObtainedSecret> {
  const url = given ?? tools.url;
  if (url === null) {
    throw new ConfigurationError(
      "PUBLIC_URL is not set, so there is no address to register at the service. Set it, such as " +
        "https://hooks.example.com, or give the whole address.",
    );
  }
  const same = (await listEndpoints(tools)).endpoints.find((endpoint) => isSameUrl(endpoint.url, url));
  if (same !== undefined) {
    throw new ActRefused("hindered", `${url} is registered already, as ${same.id} (${same.status}).`);
  }
  const body = {
    url,
    enabled_events: events,
    ...(apiVersion === null ? {} : { api_version: apiVersion }),
    ...(description === null ? {} : { description }),
  };
  return obtainSecret(tools, { kind: "register", endpointId: null, body }).catch((error: unknown) => {
    // It refused the body, not the key or the timing.
    const isRefused = error instanceof ServiceRefusedError && (error.status === 400 || error.status === 422);
    if (!isRefused) throw error;
    throw new ActRefused("invalid", `${error.message}. The service refused this endpoint.`, { cause: error });
  });
}

async function otherEndpoints(tools: EndpointTools, id: string): Promise<Registered["others"]> {
  const known = new Set((await listKnownEndpoints(tools.db)).map((endpoint) => endpoint.id));
  const { endpoints } = await listEndpoints(tools);
  return endpoints
    .filter((endpoint) => endpoint.id !== id && endpoint.status === "enabled")
    .map((endpoint) => ({ endpoint, isKnown: known.has(endpoint.id) }));
}

/** Records a secret in the transaction that stores it, also where a call finishes what another one began. */
const recordStored =
  (call: Pick<ActCall<unknown>, "actor">): NonNullable<EndpointTools["record"]> =>
  (trx, { kind, endpointId, secretId, former }) =>
    recordOf(kind === "register" ? registering : rotating, call)(trx, {
      subject: { kind: "endpoint", id: endpointId },
      before: { secret: former },
      after: { secret: secretId },
    });

/** Has the service send a test event. `eventId`: null where the service does not name it. */
export const testing: Act<
  ReadingTools,
  { endpoint: string | null },
  { endpoint: WebhookEndpoint; eventId: string | null }
> = {
  name: "endpoint.tested",
  permission: "endpoint:write",
  fields: { endpoint: endpointField },
  async run(tools, call) {
    const endpoint = await assertAsShown(tools, call);
    const subject = { kind: "endpoint", id: endpoint.id };
    await inTransaction(tools.db, (trx) => recordOf(testing, call)(trx, { subject }));
    return { endpoint, eventId: await sendTestEvent(tools, endpoint.id) };
  },
};

/** No event is sent to it any more. One that is gone at the service is only forgotten here, as after a crash. */
export const removing: Act<
  ReadingTools,
  { endpoint: string },
  { id: string; secretId: string | null; wasThere: boolean }
> = {
  name: "endpoint.removed",
  permission: "endpoint:write",
  fields: { endpoint: reference },
  async run(tools, call) {
    const { endpoint: id } = call.input;
    const { known, there } = await findToRemove(tools, id);
    if (there === undefined && known === undefined) throw unknownEndpoint(id);
    const wasThere = await tools.client
      .send(deleteWebhookEndpoint, { params: { id } }, { idempotencyKey: tools.newKey() })
      .then(
        () => true,
        (error: unknown) => {
          const isGone = error instanceof ServiceRefusedError && error.status === 404;
          if (!isGone || known === undefined) throw error;
          return false;
        },
      );
    const secretId = known?.secretId ?? null;
    await inTransaction(tools.db, async (trx) => {
      await forgetEndpoint(trx, id);
      const subject = { kind: "endpoint", id };
      await recordOf(removing, call)(trx, { subject, before: { secret: secretId } });
    });
    return { id, secretId, wasThere };
  },
};

/** An endpoint as it is known here and at the service. */
export async function findToRemove(tools: Pick<ReadingTools, "db" | "client">, id: string) {
  const known = (await listKnownEndpoints(tools.db)).find((endpoint) => endpoint.id === id);
  const there = (await listEndpoints(tools)).endpoints.find((endpoint) => endpoint.id === id);
  return { known, there };
}

/** The version of an endpoint for decisions about it. `secretId`: the secret stored for it. */
export function versionOfEndpoint(
  endpoint: WebhookEndpoint,
  secretId: string | null,
  openCall: { idempotencyKey: string } | null,
): string {
  const { id, status, url, has_pending_rotation: isPending, rotation_expires_at: until } = endpoint;
  const parts = [id, status, url, isPending ?? null, until ?? null, secretId];
  return createHash("sha256")
    .update(JSON.stringify([...parts, openCall?.idempotencyKey ?? null]))
    .digest("hex")
    .slice(0, 32);
}

/** The endpoint that is named, or the only one, where it is as it was shown. */
async function assertAsShown(
  tools: ReadingTools,
  { input, decidedOn }: ActCall<{ endpoint: string | null }>,
): Promise<WebhookEndpoint> {
  const endpoint = await findOwnEndpoint(tools, input.endpoint ?? undefined);
  if (decidedOn === null) return endpoint;
  const known = (await listKnownEndpoints(tools.db)).find(({ id }) => id === endpoint.id);
  const version = versionOfEndpoint(endpoint, known?.secretId ?? null, await findOpenCall(tools.db));
  if (decidedOn !== version) throw outdated(`The endpoint ${endpoint.id}`);
  return endpoint;
}

/**
 * Rotates the secret of an endpoint, or completes an interrupted rotation. One call makes one rotation. Without an id:
 * of the only endpoint of this deployment. Throws `UsageError` where another rotation is pending or being made, and a
 * `ServiceError`.
 */
function rotateSecret(
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
async function sendTestEvent(
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
