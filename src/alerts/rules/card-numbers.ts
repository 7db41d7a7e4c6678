import type { Condition } from "./condition.ts";
import type { AlertSettings } from "../settings.ts";
import { headlineText, short } from "./wording.ts";

/** A field in which a card number stood, and the object that showed it. */
export interface CardNumberField {
  resource: string;
  id: string;
  path: string;
}

const withArticle = (resource: string): string =>
  `${/^[aeiou]/.test(resource) ? "an" : "a"} ${resource}`;

/**
 * Somebody writes card numbers into a field. One alert a field, however many objects have it so; it names the last of
 * them and none of the digits. Pure.
 */
export function cardNumberCondition(
  rules: AlertSettings["rules"],
  { resource, id, path }: CardNumberField,
  at: Date,
): Condition {
  return {
    key: `card-number:${resource}:${path}`,
    rule: "card_number",
    severity: rules.card_number.severity,
    title: headlineText({
      lead: `Card number found in ${short(path)} of ${withArticle(resource)}`,
      next: "Masked here, not at the service",
    }),
    advice:
      "Find what writes card numbers into this field (a form, an import, a support tool) and stop it today; then " +
      "have them removed at the " +
      "service. Until that is done every system that reads the field is in the scope of PCI DSS. Here all but " +
      "the last four digits " +
      'are masked. This is told once for the field: "npx tallyhook alerts ack" when it is done.',
    facts: [
      { label: "Field", value: path },
      { label: "Seen in", value: `${resource} ${id}` },
    ],
    kept: { resource, id, path },
    family: "card-numbers",
    at,
  };
}
