import type { Condition } from "./condition.ts";
import type { AlertSettings } from "../settings.ts";

/** A field in which a card number stood, and the object that showed it. */
export interface CardNumberField {
  resource: string;
  id: string;
  path: string;
}

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
    title: `A card number stood in ${path} of the ${resource} ${id}`,
    advice:
      "Everything but its last four digits is masked here. Whoever writes this field has to stop now, and to have the numbers " +
      "removed at the service: until then every system that reads the field is in the scope of PCI DSS. Nothing has to be rotated. " +
      "Acknowledge this alert when that is done: it is one for all objects with this field, and is not repeated.",
    facts: [
      { label: "Field", value: path },
      { label: "Seen in", value: `${resource} ${id}` },
    ],
    kept: { resource, id, path },
    family: "card-numbers",
    at,
  };
}
