import { isWireId } from "../../contract/wire-types.ts";
import { canonicalTimestamp } from "../../contract/timestamp.ts";

/** Stands where something about a person was. */
export const redacted = "[redacted]";

/** What a text must look like to stay under a key of this kind; where a name or an address could stand, it goes. */
type Kind =
  | "id"
  | "reference"
  | "word"
  | "code"
  | "result"
  | "currency"
  | "brand"
  | "country"
  | "number"
  | "time"
  | "flag"
  | "object";

/** Brands of cards that are spelt with a blank. */
const longBrands =
  /^(?:american express|diners club(?: international)?|union pay|china unionpay|carte(?:s)? bancaires?)$/i;

const isText: Readonly<Record<Kind, (text: string) => boolean>> = {
  // Of the mirror's own objects, and so whatever the service says: rows are found by it.
  id: isWireId,
  reference: (text) => /^[\w.:/+=|-]{1,255}$/.test(text),
  // Of the interface: small letters, such as `partially_refunded` or `order.created`.
  word: (text) => /^[a-z][a-z0-9]*(?:[_.-][a-z0-9]+)*$/.test(text) && text.length <= 40,
  // Of the merchant: letters and digits in groups, such as `ZXYQF2JM` or `SPRING-2026`.
  code: (text) => /^[A-Za-z0-9]+(?:[_.:-][A-Za-z0-9]+)*$/.test(text) && text.length <= 50,
  // Of a processor.
  result: (text) => /^(?:[A-Za-z]{1,3}|[A-Za-z]{0,2}\d{1,6})$/.test(text),
  currency: (text) => /^[A-Za-z]{3}$/.test(text),
  brand: (text) => /^[A-Za-z][A-Za-z_-]{1,19}$/.test(text) || longBrands.test(text),
  country: (text) => /^[A-Za-z]{2,3}$/.test(text),
  number: (text) => /^-?\d{1,20}(?:\.\d{1,10})?$/.test(text),
  time: (text) => canonicalTimestamp(text) !== null || /^\d{4}-\d{2}-\d{2}$/.test(text),
  flag: () => false,
  object: () => false,
};

/** A number under another key may be a part of a card's, or a telephone's. */
const hasNumbers: ReadonlySet<Kind> = new Set(["id", "word", "code", "result", "number", "time"]);

const keys = (text: string): string[] => text.split(/\s+/).filter((key) => key !== "");

/**
 * The only keys of the service's objects whose values stay when a person is erased: the books need them, and without the rest
 * they lead to nobody. What is not here goes, so that a field nobody thought of goes as well. The last four digits go
 * with the rest, since with brand and time they tell a card; the processor's id of a transaction leads to it.
 */
const stays: ReadonlyMap<string, Kind> = new Map(
  Object.entries({
    id: keys(`id customer_id order_id subscription_id transaction_id`),
    reference:
      keys(`payment_method_id default_payment_method_id plan_id product_id coupon_id refund_id
      shipping_address_id processor_transaction_id product_ids plan_ids`),
    word: keys(
      `type kind status failure_code interval duration product_scope plan_scope anchor_day`,
    ),
    code: keys(`order_number code coupon_code plan_code api_version`),
    result: keys(`response_code avs_result cvv_result`),
    currency: ["currency"],
    brand: keys(`card_brand brand`),
    country: ["country"],
    number: keys(`amount one_time_amount subtotal discount_amount max_discount_amount minimum_amount
      total price percentage quantity attempt_count subscription_cycle cycle billing_cycles
      current_billing_cycle total_billing_cycles interval_count duration_in_cycles`),
    time: keys(`created_at updated_at canceled_at deleted_at archived_at starts_at expires_at
      current_period_start current_period_end next_billing_date next_retry_at start_date end_date
      period_start period_end billed_at`),
    flag: keys(`deleted active is_default first_time_customer_only absent next_retry_unknown`),
    object:
      keys(`data object customer order transaction subscription items transactions refunds cycles
      subscriptions payment_method payment_methods card plan billing_cycle applied_coupon
      shipping_address processor_response products pricing_tiers`),
  } satisfies Record<Kind, string[]>).flatMap(([kind, each]) =>
    each.map((key) => [key, kind as Kind] as const),
  ),
);

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
