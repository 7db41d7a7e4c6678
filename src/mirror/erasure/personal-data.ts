/** Stands where something about a person was. */
export const redacted = "[redacted]";

/**
 * Keys of the service's objects, at any depth, under which something may stand that tells who somebody is. Ids,
 * amounts, statuses, times, brands and countries stay: the books need them, and they lead to nobody without the rest.
 */
const personalKeys = new Set([
  "email",
  "first_name",
  "last_name",
  "full_name",
  "phone",
  "company",
  "description",
  "card_last_four",
  "last4",
  "exp",
  "authorization_code",
]);

/** May hold anything, under keys that only the merchant knows. */
const freeKeys = new Set(["metadata", "billing_details"]);

export const isPersonal = (key: string): boolean => personalKeys.has(key) || freeKeys.has(key);

/** A JSON value without what is personal in it. What is null or absent stays so. Pure, idempotent. */
export function withoutPersonalData(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutPersonalData);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) => [key, withoutPersonalField(key, field)]),
  );
}

/** The same for one field, or one column, of an object. */
export function withoutPersonalField(key: string, field: unknown): unknown {
  if (field === null || field === undefined) return field;
  if (freeKeys.has(key)) return {};
  if (key === "shipping_address") return withoutWhereabouts(field);
  return personalKeys.has(key) ? redacted : withoutPersonalData(field);
}

/** Of an address only the country stays: what the field of the full name is called, the interface does not show. */
function withoutWhereabouts(address: unknown): unknown {
  if (typeof address !== "object" || address === null || Array.isArray(address)) return redacted;
  return Object.fromEntries(
    Object.entries(address).map(([key, field]) => [
      key,
      key === "id" || key === "country" || field === null ? (field as unknown) : redacted,
    ]),
  );
}
