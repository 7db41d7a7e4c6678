import * as routes from "../../../../core/contract/resources/webhook-endpoints.ts";
import { plainAnswer } from "../../engine/answer.ts";
import { ApiError, invalidValue } from "../../engine/api-error.ts";
import { latestVersion, usableVersion } from "../../engine/api-versions.ts";
import { knownEventTypes } from "../../engine/event-log.ts";
import type { Space } from "../../engine/space.ts";
import { listAnswer } from "../../http/list.ts";
import { type Mounted, mounted } from "../../http/mount.ts";
import { find } from "../find.ts";
import { type WebhookEndpointRecord, checkWebhookUrl, webhookEndpointBody } from "./webhook-endpoint.ts";

/** The type of the test event; the interface names none. */
const testEventType = "webhook_endpoint.test";

const create = mounted(routes.createWebhookEndpoint, (space, { body }) => {
  const endpoint = createWebhookEndpoint(space, body);
  return plainAnswer(201, {
    ...webhookEndpointBody(endpoint, space.time.iso()),
    signing_secret: endpoint.secrets[0]?.value,
  });
});

const list = mounted(routes.listWebhookEndpoints, (space, { query }) =>
  listAnswer(space, space.webhookEndpoints, query, {
    url: `/v1${routes.listWebhookEndpoints.path}`,
    show: (endpoint) => webhookEndpointBody(endpoint, space.time.iso()),
  }),
);

const retrieve = mounted(routes.getWebhookEndpoint, (space, { params }, state) => {
  const endpoint = find(state, space, "webhookEndpoints", params.id);
  return plainAnswer(200, webhookEndpointBody(endpoint, space.time.iso()));
});

const update = mounted(routes.updateWebhookEndpoint, (space, { params, body }, state) => {
  const endpoint = find(state, space, "webhookEndpoints", params.id);
  const changed = updateWebhookEndpoint(space, endpoint, body);
  return plainAnswer(200, webhookEndpointBody(changed, space.time.iso()));
});

const remove = mounted(routes.deleteWebhookEndpoint, (space, { params }, state) => {
  const { id } = find(state, space, "webhookEndpoints", params.id);
  space.webhookEndpoints.delete(id);
  return plainAnswer(200, { id, deleted: true, message: "The webhook endpoint was deleted." });
});

const rotate = mounted(routes.rotateWebhookSecret, (space, { params, body }, state) => {
  const endpoint = find(state, space, "webhookEndpoints", params.id);
  const { secret, previousValidUntil } = rotateSecret(space, endpoint, body.grace_period_hours);
  return plainAnswer(200, {
    id: endpoint.id,
    new_signing_secret: secret,
    previous_secret_valid_until: previousValidUntil,
    message: "Both secrets sign until the previous one expires.",
  });
});

const test = mounted(routes.testWebhookEndpoint, (space, { params }, state) => {
  const { id } = find(state, space, "webhookEndpoints", params.id);
  const event = state.sendTest(space, id, testEventType);
  return plainAnswer(200, { id, event_id: event.id, message: "A test event is on its way." });
});

export const webhookEndpointEndpoints: readonly Mounted[] = [create, list, retrieve, update, remove, rotate, test];

export interface WebhookEndpointInput {
  url?: string | undefined;
  description?: string | null | undefined;
  enabled_events?: string[] | undefined;
  status?: "enabled" | "disabled" | undefined;
  api_version?: string | undefined;
}

/** Registers an endpoint with a secret of its own, pinned to a schema version, by default the latest. */
export function createWebhookEndpoint(
  space: Space,
  input: WebhookEndpointInput & { url: string; enabled_events: string[] },
): WebhookEndpointRecord {
  assertAcceptable(space, input);
  const at = space.time.iso();
  const endpoint: WebhookEndpointRecord = {
    id: space.ids.uuid(),
    url: input.url,
    description: input.description ?? null,
    enabled_events: input.enabled_events,
    status: "enabled",
    api_version: input.api_version ?? latestVersion.version,
    api_version_pinned_at: input.api_version === undefined ? null : at,
    secrets: [{ value: space.ids.signingSecret(), valid_until: null }],
    created_at: at,
    updated_at: at,
  };
  space.webhookEndpoints.insert(endpoint);
  return endpoint;
}

function updateWebhookEndpoint(
  space: Space,
  endpoint: WebhookEndpointRecord,
  input: WebhookEndpointInput,
): WebhookEndpointRecord {
  assertAcceptable(space, input);
  const fields = Object.fromEntries(
    Object.entries(input).filter(([, value]) => value !== undefined),
  ) as Partial<WebhookEndpointRecord>;
  if (Object.keys(fields).length === 0) return endpoint;
  const changed: WebhookEndpointRecord = {
    ...endpoint,
    ...fields,
    ...(input.api_version === undefined ? {} : { api_version_pinned_at: space.time.iso() }),
    updated_at: space.touch(endpoint.updated_at),
  };
  space.webhookEndpoints.replace(changed);
  return changed;
}

/**
 * Replaces the signing secret. Both sign until the grace period of the old one ends. Refused while a rotation is
 * pending.
 */
function rotateSecret(
  space: Space,
  endpoint: WebhookEndpointRecord,
  graceHours: number,
): { endpoint: WebhookEndpointRecord; secret: string; previousValidUntil: string } {
  const now = space.time.iso();
  if (endpoint.secrets.some(({ valid_until }) => valid_until !== null && valid_until > now)) {
    const message = "A rotation is pending: wait until its grace period ends.";
    throw new ApiError("invalid_state_transition", message);
  }
  const previousValidUntil = new Date(space.time.nowMs() + graceHours * 3_600_000).toISOString();
  const secret = space.ids.signingSecret();
  const current = endpoint.secrets.find(({ valid_until }) => valid_until === null);
  const changed: WebhookEndpointRecord = {
    ...endpoint,
    secrets: [
      { value: secret, valid_until: null },
      ...(current === undefined ? [] : [{ ...current, valid_until: previousValidUntil }]),
    ],
    updated_at: space.touch(endpoint.updated_at),
  };
  space.webhookEndpoints.replace(changed);
  return { endpoint: changed, secret, previousValidUntil };
}

function assertAcceptable(space: Space, input: WebhookEndpointInput): void {
  const { url, enabled_events, api_version } = input;
  if (url !== undefined) {
    const verdict = checkWebhookUrl(url, space.settings().allow_http_endpoints);
    if (verdict === "malformed") throw new ApiError("invalid_format", "must be a URL", "url");
    if (verdict === "insecure") {
      throw new ApiError("webhook_endpoint_invalid", "The URL must be https.", "url");
    }
  }
  const unknown = enabled_events?.find((pattern) => !isKnownPattern(space, pattern));
  if (unknown !== undefined) throw invalidValue("enabled_events", `unknown event ${unknown}`);
  if (api_version !== undefined) usableVersion(api_version, "api_version");
}

function isKnownPattern(space: Space, pattern: string): boolean {
  if (pattern === "*" || /^[a-z_]+(\.[a-z_]+)*\.\*$/.test(pattern)) return true;
  const names = Object.values(space.settings().chargeback_events);
  return knownEventTypes.includes(pattern) || names.includes(pattern);
}
