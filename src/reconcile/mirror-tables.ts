import type { Resource } from "../mirror/observation.ts";

/** The table in schema `mirror` in which a resource lies. */
export const mirrorTableOf = {
  order: "orders",
  transaction: "transactions",
  subscription: "subscriptions",
  customer: "customers",
} as const satisfies Record<Resource, string>;

const resourceOfTable: ReadonlyMap<string, Resource> = new Map(
  (Object.keys(mirrorTableOf) as Resource[]).map((resource) => [mirrorTableOf[resource], resource]),
);

/** Whose rows lie in a table of schema `mirror`. Throws `TypeError` for a table of another kind. */
export function resourceIn(table: string): Resource {
  const resource = resourceOfTable.get(table);
  if (resource === undefined) throw new TypeError(`no resource lies in ${table}`);
  return resource;
}
