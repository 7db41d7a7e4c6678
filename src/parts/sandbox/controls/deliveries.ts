import type Router from "@koa/router";
import { z } from "zod";
import { signatureScheme } from "../../../core/contract/signature/signature-scheme.ts";
import type { Clock } from "../../../platform/clock.ts";
import { ApiError, notFound } from "../engine/api-error.ts";
import { latestVersion } from "../engine/api-versions.ts";
import { deliveryBody } from "../engine/delivery/delivery-log.ts";
import { eventBody } from "../engine/event-log.ts";
import { liveSecrets } from "../resources/webhook-endpoints/webhook-endpoint.ts";
import { type ControlDeps, addControl, latest, mode, nothing, place, spaceAt } from "./control.ts";

/** `GET /_sandbox/deliveries`: the latest deliveries, oldest first, with their attempts. */
export function addDeliveries(router: Router, { state }: ControlDeps): void {
  addControl(router, {
    method: "GET",
    path: "/deliveries",
    query: z.object({
      limit: latest,
      status: z.enum(["pending", "succeeded", "failed", "lost", "canceled"]).optional(),
      event_id: z.string().optional(),
      endpoint_id: z.string().optional(),
    }),
    body: nothing,
    run({ query: { limit, status, event_id, endpoint_id } }) {
      const { dispatcher } = state();
      const wanted = dispatcher
        .latest()
        .filter(
          (delivery) =>
            (status === undefined || delivery.status === status) &&
            (event_id === undefined || delivery.event.id === event_id) &&
            (endpoint_id === undefined || delivery.endpointId === endpoint_id),
        );
      return {
        data: lastOf(wanted, limit).map(deliveryBody),
        counts: dispatcher.counts,
        pending: dispatcher.pending,
      };
    },
  });
}

/** `GET /_sandbox/events`: the latest events, oldest first, as they are sent. */
export function addEvents(router: Router, { state }: ControlDeps): void {
  addControl(router, {
    method: "GET",
    path: "/events",
    query: z.object({
      limit: latest,
      mode,
      type: z.string().optional(),
      object_id: z.string().optional(),
    }),
    body: nothing,
    run({ query }) {
      const { events } = state();
      const wanted = events
        .latest()
        .filter(
          (event) =>
            event.mode === query.mode &&
            (query.type === undefined || event.type === query.type) &&
            (query.object_id === undefined || event.subject.record.id === query.object_id),
        );
      return {
        data: lastOf(wanted, query.limit).map((event) => eventBody(event, latestVersion.version)),
        total: events.total,
      };
    },
  });
}

function lastOf<T>(entries: readonly T[], count: number): T[] {
  return count === 0 ? [] : entries.slice(-count);
}

/**
 * `POST /_sandbox/deliveries/{id}/redeliver`: sends the same event to the same endpoint once more, with a fresh
 * signature, whether it was lost, failed or accepted. Answers when the receiver has answered.
 */
export function addRedeliver(router: Router, { state }: ControlDeps): void {
  addControl(router, {
    method: "POST",
    path: "/deliveries/:id/redeliver",
    query: nothing,
    body: nothing,
    async run({ params }) {
      const { dispatcher } = state();
      const delivery = dispatcher.redeliver(params["id"] ?? "");
      if (delivery === undefined) throw notFound("delivery");
      await dispatcher.quiet();
      return deliveryBody(delivery);
    },
  });
}

const question = z.strictObject({
  endpoint_id: z.string(),
  /** The headers of a delivery that carry its signature. */
  headers: z.record(z.string(), z.string()),
  /** The delivery's body as text. */
  body: z.string(),
  tolerance_seconds: z.int().min(0).default(300),
  ...place,
});

/**
 * `POST /_sandbox/signature_check`: whether a captured delivery verifies with its endpoint's live secrets. When it does
 * not, 401 `webhook_signature_failed` with the reason.
 */
export function addSignatureCheck(router: Router, { state, wallClock }: ControlDeps): void {
  addControl(router, {
    method: "POST",
    path: "/signature_check",
    query: nothing,
    body: question,
    run: ({ body }) => verdict(state, wallClock, body),
  });
}

function verdict(state: ControlDeps["state"], wallClock: Clock, asked: z.output<typeof question>): { valid: true } {
  const current = state();
  const endpoint = spaceAt(current, asked).webhookEndpoints.get(asked.endpoint_id);
  if (endpoint === undefined) throw notFound("webhook endpoint", "endpoint_id");
  const secrets = liveSecrets(endpoint, current.time.iso());
  const checked = signatureScheme(current.settings.signature_scheme).verify({
    rawHeaders: Object.entries(asked.headers).flat(),
    body: Buffer.from(asked.body),
    secrets: secrets.map((value, i) => ({
      id: `secret ${i + 1}`,
      value,
      notBefore: null,
      notAfter: null,
    })),
    now: wallClock.now(),
    toleranceSeconds: asked.tolerance_seconds,
  });
  if (checked.ok) return { valid: true };
  throw new ApiError("webhook_signature_failed", `The signature is not valid: ${checked.reason}.`);
}

/** `GET /_sandbox/outbox`: the latest messages that the service would have mailed, oldest first. */
export function addOutbox(router: Router, { state }: ControlDeps): void {
  addControl(router, {
    method: "GET",
    path: "/outbox",
    query: z.object({ limit: latest, to: z.string().optional(), ...place }),
    body: nothing,
    run({ query: { limit, to, ...where } }) {
      const { outbox } = spaceAt(state(), where);
      const wanted = outbox.all().filter((message) => to === undefined || message.to === to);
      return { data: limit === 0 ? [] : wanted.slice(-limit), total: outbox.size };
    },
  });
}
