import { z } from "zod";
import { signatureSchemeNames } from "../../../core/contract/signature/signature-scheme.ts";

const eventName = z.string().regex(/^[a-z_]+(\.[a-z_]+)+$/, "must be a name such as order.chargeback");

const requests = (usual: number) => z.int().min(0).default(usual);

/** Requests per window: of a category, and of a merchant in total. The service does not publish its limits. */
const rateLimits = z
  .strictObject({
    enabled: z.boolean().default(false),
    window_seconds: z.int().min(1).max(86_400).default(60),
    read: requests(1000),
    write: requests(500),
    coupon_validation: requests(60),
    global: requests(1200),
    retry_after: z.enum(["seconds", "http_date"]).default("seconds"),
  })
  .prefault({});

/** Choices where the interface leaves the behaviour open. The names are those of `/_sandbox/switches`. */
export const settingsSchema = z.strictObject({
  /** Whether webhook endpoints may use http: on loopback only, anywhere, or nowhere. */
  allow_http_endpoints: z.union([z.literal("loopback"), z.boolean()]).default("loopback"),
  /** Whether two changes of an object within one millisecond get the same `updated_at`. */
  same_millisecond_ties: z.boolean().default(false),
  /** The content of `order.created`: the order before the gateway answered, or after. */
  order_created_snapshot: z.enum(["pending", "final"]).default("pending"),
  /** Whether to send events for changes of a subscription's status for which the interface names none. */
  subscription_status_events: z.boolean().default(false),
  sort_by_updated_at: z.enum(["accepted", "refused", "ignored"]).default("accepted"),
  limit_above_maximum: z.enum(["clamped", "refused"]).default("clamped"),
  maximum_page_size: z.int().min(1).max(1000).default(100),
  /** `dropped`: a page after a cursor leaves out objects created in the cursor's second, as careless paging does. */
  page_boundary_ties: z.enum(["kept", "dropped"]).default("kept"),
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
  /** Days from the first decline of a renewal to each retry. */
  dunning_retry_days: z.array(z.number().positive()).max(20).default([1, 3, 5, 7]),
  /** Seconds from each failed delivery to the next attempt. */
  delivery_retry_seconds: z
    .array(z.number().positive())
    .max(20)
    .default([5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400]),
  signature_scheme: z.enum(signatureSchemeNames).default("svc"),
  /** False: the merchant has no gateway, so that no card can be charged or vaulted. */
  gateway_configured: z.boolean().default(true),
  /** Wall time that the gateway takes to charge a new order, in milliseconds. The order is pending during that time. */
  gateway_delay_ms: z.int().min(0).max(60_000).default(0),
  /**
   * The gateway does not answer the charge of a new order. The order stays pending; a repeat with the same idempotency
   * key completes it once the gateway answers again.
   */
  gateway_times_out: z.boolean().default(false),
  /** Business days until sales with a live key are confirmed; 0: immediately, as with a test key. */
  live_settlement_days: z.int().min(0).max(3).default(0),
  /** The vault refuses to release a card. */
  gateway_keeps_cards: z.boolean().default(false),
  /** Whether the processor requires a billing address to vault a card. */
  billing_details: z.enum(["optional", "required"]).default("optional"),
  /** Every charge of a stored card is declined with a demand to capture the card again. */
  card_replacement_required: z.boolean().default(false),
  rate_limits: rateLimits,
  /** The most concurrent deliveries to one endpoint. */
  delivery_concurrency: z.int().min(1).max(256).default(32),
});

export type Settings = z.output<typeof settingsSchema>;

export function defaultSettings(): Settings {
  return settingsSchema.parse({});
}
