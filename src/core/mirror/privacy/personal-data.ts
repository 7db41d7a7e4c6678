import { redacted } from "../../../platform/redaction.ts";
import { mirrorResources } from "../resources.ts";
import { type SurvivingForm, type SurvivingKeys, formsWithNumbers, hasForm } from "./kinds.ts";
import { type MirrorResource, allColumns } from "../resources/resource.ts";

function keys(text: string): string[] {
  return text.split(/\s+/).filter((key) => key !== "");
}

/**
 * The keys whose values survive an erasure in every resource: the books need them, and alone they identify no person. A
 * key that is neither here nor among a resource's own (`keptOnErasure`) is redacted, and so is every unforeseen field.
 * A card's last four digits are redacted: with brand and time they identify it. The processor's id of a transaction (in
 * its `keptOnErasure`) is kept: through it the merchant can still trace the payment.
 */
const common: SurvivingKeys = {
  id: "id customer_id order_id subscription_id transaction_id",
  reference: `payment_method_id plan_id product_id coupon_id refund_id shipping_address_id product_ids plan_ids`,
  word: `type kind status failure_code interval duration product_scope plan_scope anchor_day`,
  code: "code plan_code api_version",
  currency: "currency",
  brand: "card_brand brand",
  country: "country",
  number: `amount one_time_amount max_discount_amount minimum_amount total price percentage quantity attempt_count cycle
    billing_cycles interval_count duration_in_cycles`,
  time: `created_at updated_at canceled_at deleted_at archived_at starts_at expires_at next_retry_at end_date period_start
    period_end billed_at`,
  flag: "active is_default first_time_customer_only",
  object: `data object customer order transaction subscription items transactions refunds cycles subscriptions
    payment_method payment_methods card plan billing_cycle applied_coupon shipping_address processor_response products
    pricing_tiers`,
};

const keptOnErasure: ReadonlyMap<string, SurvivingForm> = kindOfKey([
  common,
  ...mirrorResources.map((resource) => resource.keptOnErasure ?? {}),
]);

/** Throws if two lists disagree: a key means the same everywhere in an event. */
function kindOfKey(lists: readonly SurvivingKeys[]): Map<string, SurvivingForm> {
  const kinds = new Map<string, SurvivingForm>();
  for (const [kind, each] of lists.flatMap((list) => Object.entries(list) as [SurvivingForm, string][])) {
    for (const key of keys(each)) {
      const known = kinds.get(key);
      if (known !== undefined && known !== kind) {
        throw new TypeError(`the key ${key} is listed to stay as ${known} and as ${kind}`);
      }
      kinds.set(key, kind);
    }
  }
  return kinds;
}

/**
 * Known keys whose values are redacted but which stay themselves: without the key `email`, a customer would be a
 * partial object. All other keys are removed with their values, since a key may itself be a person's name.
 */
const keptRedacted = new Set(
  keys(`email first_name last_name full_name phone company description name failure_reason
    card_last_four last4 exp authorization_code response_text address_line1 address_line2 city state
    postal_code code_prefix`),
);
/** Maps whose keys the merchant chooses. */
const maps = new Set(["metadata", "billing_details"]);

/** The keys that the lists above know, for the test that compares them with the interface. */
export const classifiedKeys: ReadonlySet<string> = new Set([...keptOnErasure.keys(), ...keptRedacted, ...maps]);

/** Deeper content cannot be stored in the mirror (canonical.ts). */
const maxDepth = 100;

/** A JSON value without personal data. Null and absent fields stay so. Pure, idempotent. */
export function withoutPersonalData(value: unknown, depth = 0): unknown {
  if (typeof value !== "object" || value === null) return value === null ? null : redacted;
  if (depth > maxDepth) return redacted;
  if (Array.isArray(value)) return value.map((item) => withoutPersonalData(item, depth + 1));
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, field]) => {
      const kept = withoutPersonalField(key, field, depth);
      return kept === undefined ? [] : [[key, kept]];
    }),
  );
}

/** The value of one field or column without personal data; undefined if its key is removed, too. */
export function withoutPersonalField(key: string, field: unknown, depth = 0): unknown {
  const kind = keptOnErasure.get(key);
  if (kind === undefined) {
    if (maps.has(key)) return field === null ? null : {};
    return keptRedacted.has(key) ? (field === null ? null : redacted) : undefined;
  }
  if (field === null || field === undefined) return field;
  if (typeof field === "number") return formsWithNumbers.has(kind) ? field : redacted;
  if (typeof field === "boolean" || field instanceof Date) return field;
  if (typeof field === "string") return field === redacted || hasForm[kind](field) ? field : redacted;
  // A list of ids or codes has the kind of its key.
  return Array.isArray(field) && field.every((item) => typeof item === "string")
    ? field.map((item) => withoutPersonalField(key, item))
    : withoutPersonalData(field, depth + 1);
}

/**
 * A field's value as shown without the right to personal data; undefined where it is hidden. A column's definition says
 * whether it is personal. Of all other fields, also unknown ones, only values that survive an erasure are shown.
 */
export function impersonalValue(resource: MirrorResource, field: string, value: unknown): unknown {
  const columns = allColumns(resource);
  const holds = Object.hasOwn(columns, field) ? columns[field]?.holds : undefined;
  if (holds !== undefined) return holds === "personal" ? undefined : value;
  const kept = withoutPersonalField(field, value);
  const isNothing = kept === undefined || kept === redacted || JSON.stringify(kept) === "{}";
  return isNothing ? undefined : kept;
}
