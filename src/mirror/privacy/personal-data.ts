import { mirrorResources } from "../resources.ts";
import { type Kind, type Stays, hasNumbers, isText } from "./kinds.ts";

/** Stands where something about a person was. */
export const redacted = "[redacted]";

function keys(text: string): string[] {
  return text.split(/\s+/).filter((key) => key !== "");
}

/**
 * The only keys of the service's objects whose values stay when a person is erased: the books need them, and without the rest
 * they lead to nobody. What is neither here nor among a resource's own (`stays`) goes, so that a field nobody thought of
 * goes as well. The last four digits go with the rest, since with brand and time they tell a card; the processor's id of a
 * transaction leads to it.
 */
const common: Stays = {
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

const stays: ReadonlyMap<string, Kind> = kindOfKey([
  common,
  ...mirrorResources.map((resource) => resource.stays ?? {}),
]);

/** Throws where two lists do not agree: a key means the same wherever it stands in an event. */
function kindOfKey(lists: readonly Stays[]): Map<string, Kind> {
  const kinds = new Map<string, Kind>();
  for (const [kind, each] of lists.flatMap((list) => Object.entries(list) as [Kind, string][])) {
    for (const key of keys(each)) {
      const known = kinds.get(key);
      if (known !== undefined && known !== kind) {
        throw new TypeError(`${key} is said to stay as ${known} and as ${kind}`);
      }
      kinds.set(key, kind);
    }
  }
  return kinds;
}

/**
 * Known keys whose values go: that there was something stays visible, and a customer without an address would be
 * another kind of object. Of any other key nothing stays, as a key may be somebody's name, too.
 */
const leavesTrace = new Set(
  keys(`email first_name last_name full_name phone company description name failure_reason
    card_last_four last4 exp authorization_code response_text address_line1 address_line2 city state
    postal_code code_prefix`),
);
/** Maps, of whose keys only the merchant knows. */
const maps = new Set(["metadata", "billing_details"]);

/** The keys that the lists above know, for the test that compares them with the interface. */
export const classifiedKeys: ReadonlySet<string> = new Set([
  ...stays.keys(),
  ...leavesTrace,
  ...maps,
]);

/** More deeply nested than anything that is stored (canonical.ts). */
const maxDepth = 100;

/** A JSON value without what is personal in it. What is null or absent stays so. Pure, idempotent. */
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

/** The same for one field, or one column, of an object; undefined where not even its key stays. */
export function withoutPersonalField(key: string, field: unknown, depth = 0): unknown {
  const kind = stays.get(key);
  if (kind === undefined) {
    if (maps.has(key)) return field === null ? null : {};
    return leavesTrace.has(key) ? (field === null ? null : redacted) : undefined;
  }
  if (field === null || field === undefined) return field;
  if (typeof field === "number") return hasNumbers.has(kind) ? field : redacted;
  if (typeof field === "boolean" || field instanceof Date) return field;
  if (typeof field === "string")
    return field === redacted || isText[kind](field) ? field : redacted;
  // A list of ids or codes stands under their key.
  return Array.isArray(field) && field.every((item) => typeof item === "string")
    ? field.map((item) => withoutPersonalField(key, item))
    : withoutPersonalData(field, depth + 1);
}
