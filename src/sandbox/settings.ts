import { z } from "zod";

const eventName = z
  .string()
  .regex(/^[a-z_]+(\.[a-z_]+)+$/, "must be a name such as order.chargeback");
const rate = z.number().min(0).max(1);

/**
 * Where the interface leaves something open, what the sandbox does about it. Names are those of `/_sandbox/switches`.
 * Where a statement of the checklist names alternatives without a default, the first is the default.
 */
export const settingsSchema = z.strictObject({
  /** Webhook endpoints with http: on loopback only, anywhere, or nowhere. */
  allow_http_endpoints: z.union([z.literal("loopback"), z.boolean()]).default("loopback"),
  /** Two changes of an object within one millisecond get the same `updated_at`. */
  same_millisecond_ties: z.boolean().default(false),
  /** What `order.created` shows: the order before the gateway answered, or after. */
  order_created_snapshot: z.enum(["pending", "final"]).default("pending"),
  /** Also announce the changes of a subscription's status for which the interface names no event. */
  subscription_status_events: z.boolean().default(false),
  sort_by_updated_at: z.enum(["accepted", "refused", "ignored"]).default("accepted"),
  limit_above_maximum: z.enum(["clamped", "refused"]).default("clamped"),
  maximum_page_size: z.int().min(1).max(1000).default(100),
  unfilterable_order_statuses: z.enum(["refused", "accepted"]).default("refused"),
  /** Seconds between a successful charge on the chargeback card and its chargeback. */
  chargeback_delay_seconds: z.number().min(0).default(5),
  chargeback_events: z
    .strictObject({
      opened: eventName.default("order.chargeback"),
      accepted: eventName.default("order.chargeback_accepted"),
      dismissed: eventName.default("order.chargeback_dismissed"),
    })
    .prefault({}),
  /** Days after the first decline of a renewal. */
  dunning_retry_days: z.array(z.number().positive()).max(20).default([1, 3, 5, 7]),
  /** Seconds from each failed delivery to the next attempt. */
  delivery_retry_seconds: z
    .array(z.number().positive())
    .max(20)
    .default([5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400]),
  signature_scheme: z.enum(["svc", "hex", "standard-webhooks"]).default("svc"),
  /** Deliveries under way at once, an endpoint. */
  delivery_concurrency: z.int().min(1).max(256).default(32),
});

export type Settings = z.output<typeof settingsSchema>;

export function defaultSettings(): Settings {
  return settingsSchema.parse({});
}

const faultTiming = (maxMs: number) => z.number().min(0).max(60_000).default(maxMs);

/** A rate alone, or with its details. */
function fault<Shape extends z.ZodRawShape>(details: Shape) {
  const schema = z.strictObject({ rate: rate.default(0), ...details });
  return z.preprocess(
    (value) => (typeof value === "number" ? { rate: value } : value),
    schema.prefault({} as z.input<typeof schema>),
  );
}

/** Rates are 0 to 1. `drop` … `corrupt` befall one delivery; the last four change what is sent. */
export const faultsSchema = z.strictObject({
  seed: z.union([z.int(), z.string().max(200)]).default(0),
  delivery: z
    .strictObject({
      /** Lost for good: never sent, never retried. */
      drop: fault({}),
      /** The same bytes a second time. */
      duplicate: fault({}),
      /** Sent late, by a wall time up to `max_ms`. */
      delay: fault({ max_ms: faultTiming(300) }),
      /** Held back until later deliveries of the endpoint were answered, or `max_ms` have passed. */
      reorder: fault({ max_ms: faultTiming(250) }),
      /** Altered after signing. `soon`: a good copy follows at once; `schedule`: by the retry schedule; `never`. */
      corrupt: fault({ retry: z.enum(["soon", "schedule", "never"]).default("soon") }),
      /** An additional event of a type nobody knows, about the same object. */
      unknown_type: fault({}),
      /** Fields that the interface does not show. */
      extra_fields: fault({}),
      /** One optional field left out. */
      missing_field: fault({}),
      /** Only the id of the object. */
      thin_object: fault({}),
    })
    .prefault({}),
});

export type Faults = z.output<typeof faultsSchema>;

export function noFaults(): Faults {
  return faultsSchema.parse({});
}
