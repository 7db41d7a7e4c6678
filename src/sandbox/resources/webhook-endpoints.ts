import * as routes from "../../service/routes/webhook-endpoints.ts";
import { plainAnswer } from "../answer.ts";
import { listAnswer } from "../http/list.ts";
import type { Mounted } from "../http/mount.ts";
import { mounted } from "../http/mount.ts";
import {
  createWebhookEndpoint,
  rotateSecret,
  updateWebhookEndpoint,
} from "../operations/webhook-endpoints.ts";
import { webhookEndpointBody } from "../wire/webhook-endpoint.ts";
import { find } from "./find.ts";

/** The type of the event that a test sends; the interface shows none. */
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
    url: "/v1/webhook_endpoints",
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
    message: "Both secrets sign until the previous one ends.",
  });
});

const test = mounted(routes.testWebhookEndpoint, (space, { params }, state) => {
  const { id } = find(state, space, "webhookEndpoints", params.id);
  const event = state.sendTest(space, id, testEventType);
  return plainAnswer(200, { id, event_id: event.id, message: "A test event is on its way." });
});

export const webhookEndpointEndpoints: readonly Mounted[] = [
  create,
  list,
  retrieve,
  update,
  remove,
  rotate,
  test,
];
