import { canonicalTimestamp } from "../../contract/timestamp.ts";
import type { Resource } from "../../mirror/snapshot.ts";

/** A part of one of the service's lists, to be read to its end. Times in the fixed form of `canonicalTimestamp`. */
export interface Slice {
  step: string;
  resource: Resource;
  path: `/${string}`;
  filter: Readonly<Record<string, string>>;
  direction: "newest_first" | "oldest_first";
  /** Null: from the first record on. */
  createdFrom: string | null;
  /** Exclusive; null: to the end of the list. */
  createdBefore: string | null;
  /** It shows every object of its bounds: what it does not show is not there. */
  isClosed: boolean;
  /** The last part of the history in this turn of the rotation. */
  closesCycle: boolean;
  reason: string;
}

/** The resources in whose lists history lies, in the order in which they are read. */
export const slicedResources = ["customer", "order", "transaction", "subscription"] as const;

type Lists = Readonly<Record<Resource, { path: `/${string}`; expand: string }>>;

const lists: Lists = {
  order: { path: "/orders", expand: "items,transactions" },
  transaction: { path: "/transactions", expand: "" },
  subscription: { path: "/subscriptions", expand: "" },
  customer: { path: "/customers", expand: "" },
};

/** Soft-deleted customers are hidden unless asked for (spec, `GET /customers`). */
const alwaysFiltered: Partial<Record<Resource, Record<string, string>>> = {
  customer: { deleted: "true" },
};

type SliceParts = Pick<Slice, "step" | "resource" | "reason"> &
  Partial<
    Pick<Slice, "createdFrom" | "createdBefore" | "isClosed" | "closesCycle" | "direction">
  > & {
    filter?: Record<string, string>;
    /** Instead of what a list of the resource always embeds. */
    expand?: string;
  };

export function slice({ step, resource, reason, filter = {}, expand, ...rest }: SliceParts): Slice {
  const list = lists[resource];
  const embedded = expand ?? list.expand;
  return {
    step,
    resource,
    reason,
    path: list.path,
    direction: "newest_first",
    createdFrom: null,
    createdBefore: null,
    isClosed: false,
    closesCycle: false,
    ...rest,
    filter: {
      ...alwaysFiltered[resource],
      ...filter,
      ...(embedded === "" ? {} : { expand: embedded }),
    },
  };
}

/** The query of a slice's first page. Subscriptions know no dates: their walk ends by what it shows. */
export function sliceQuery(
  { resource, filter, direction, createdFrom, createdBefore }: Slice,
  limit: number,
): Record<string, string> {
  const query: Record<string, string> = { ...filter, limit: String(limit) };
  if (direction === "oldest_first") query["sort"] = "created_at[asc]";
  if (resource === "subscription") return query;
  if (createdFrom !== null) query["created_at[gte]"] = createdFrom;
  if (createdBefore !== null) query["created_at[lt]"] = createdBefore;
  return query;
}

/** A time in the form in which slices hold their bounds. */
export function bound(at: Date): string {
  const text = canonicalTimestamp(at.toISOString());
  if (text === null) throw new RangeError("a bound must lie between the years 0001 and 9999");
  return text;
}

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
