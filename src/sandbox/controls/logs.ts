import type Router from "@koa/router";
import { z } from "zod";

import { deliveryBody } from "../delivery/delivery.ts";
import { latestVersion } from "../rules/versions.ts";
import { eventBody } from "../wire/event.ts";
import type { ControlDeps } from "./control.ts";
import { addControl } from "./control.ts";
import { latest, mode, nothing } from "./fields.ts";

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
