import { moneyText } from "../../../platform/money.ts";
import type { ObjectPage } from "./object-view.ts";
import { itemsInWords, known, nameIn, shown } from "./recognized.ts";
import { nouns } from "./words.ts";

/** The title of an object's page: its noun and its name. */
export const titleOf = (resource: string, name: string): string => `${nouns[resource] ?? resource} ${name}`;

type Titled = Pick<ObjectPage, "object" | "fields" | "person" | "charge" | "style">;

/**
 * The title of an object by what a person says: `Frances Ritchie`, or `Order 1001: 19.80 USD, Frances Ritchie, Black
 * tea`; by its id where nothing else is known, or the visitor may see nothing else. Pure.
 */
export function titleOfObject({ object, fields, person, charge, style }: Titled): string {
  const { resource, id } = object;
  const values = new Map(fields.map(({ field, value }) => [field, value]));
  const textOf = (field: string): string | null => known(values.get(field));
  if (resource === "customer") return nameIn(values) ?? titleOf(resource, shown(id));
  const minor = ["total", "amount", "plan.amount"]
    .map((field) => values.get(field))
    .find((value) => value !== undefined);
  const amount = typeof minor === "number" ? moneyText(minor, style.currency) : null;
  const name = known(person?.name);
  const said = [amount, name === null ? null : shown(name), charge === null ? null : itemsInWords(charge)];
  const number = textOf("order_number");
  const plan = textOf("plan.name");
  const type = textOf("type");
  const head =
    resource === "order" && number !== null
      ? titleOf(resource, shown(number))
      : resource === "subscription" && plan !== null
        ? titleOf(resource, shown(plan))
        : resource === "transaction" && type !== null
          ? shown(type.charAt(0).toUpperCase() + type.slice(1))
          : titleOf(resource, shown(id));
  const rest = said.flatMap((word) => word ?? []);
  return rest.length === 0 ? head : `${head}: ${rest.join(", ")}`;
}
