/**
 * Keys under which nobody writes freely, and which must stay as they came: ids, codes, times, amounts, addresses of
 * pages, phones and mail. They name things, and a long number there is no card.
 */
const keptKeys = new Set([
  "id",
  "order_number",
  "email",
  "phone",
  "url",
  "sku",
  "code",
  "type",
  "kind",
  "status",
  "currency",
  "amount",
  "total",
  "subtotal",
  "price",
  "quantity",
]);
const keptEndings = /_(?:ids?|at|code|amount|url)$/;

/** Whether what stands under this key stays as it came. */
export const isKept = (key: string): boolean => keptKeys.has(key) || keptEndings.test(key);
