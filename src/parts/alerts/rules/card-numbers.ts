import type { Knex } from "knex";
import type { MaskedObject } from "../../../core/mirror/listener.ts";
import type { AlertContext, FoundBy } from "../alert-context.ts";
import { raise } from "../raise-conditions.ts";
import type { AlertSettings } from "../settings.ts";
import type { Condition } from "../timeline.ts";
import { endsByAcknowledging, headlineText, shortened } from "./wording.ts";

/**
 * Reports the fields that contained card numbers. Belongs in the transaction that stores the masked object, before all
 * other locks on alerts. Costs nothing without such fields. Idempotent.
 */
export async function reportCardNumbers(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  masked: readonly MaskedObject[],
  foundBy: FoundBy,
): Promise<void> {
  const at = alertContext.clock.now();
  const conditions = masked.flatMap(({ resource, id, paths }) =>
    paths.map((path) => cardNumberCondition(alertContext.settings.rules, { resource, id, path }, at)),
  );
  await raise(trx, alertContext, conditions, foundBy);
}

/** A field that contained a card number, and the object that showed it. */
export interface CardNumberField {
  resource: string;
  id: string;
  path: string;
}

const withArticle = (resource: string): string => `${/^[aeiou]/.test(resource) ? "an" : "a"} ${resource}`;

/**
 * Card numbers are being written into a field. There is one alert for each field, for any number of objects; it names
 * the last of them and none of the digits.
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
      lead: `Card number found in ${shortened(path)} of ${withArticle(resource)}`,
      next: "Masked here, not at the service",
    }),
    advice:
      "Find what writes card numbers into this field (a form, an import, a support tool) and stop it today. Then have " +
      "them removed at the service. Until then every system that reads the field is in the scope of PCI DSS. " +
      `Tallyhook masks all but the last four digits. ${endsByAcknowledging}`,
    facts: [
      { label: "Field", value: path },
      { label: "Seen in", value: `${resource} ${id}` },
    ],
    storedFacts: { resource, id, path },
    family: "card-numbers",
    at,
  };
}
