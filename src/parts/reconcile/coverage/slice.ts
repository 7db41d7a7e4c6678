import { canonicalTimestamp } from "../../../core/contract/timestamp.ts";
import { mirrorResources, resourceNamed } from "../../../core/mirror/resources.ts";
import type { Resource } from "../../../core/mirror/snapshot.ts";

/** A part of one of the service's lists, to be read to its end. Times in the fixed form of `canonicalTimestamp`. */
export interface Slice {
  step: string;
  resource: Resource;
  path: string;
  filter: Readonly<Record<string, string>>;
  direction: "newest_first" | "oldest_first";
  /** Null: from the first record on. */
  createdFrom: string | null;
  /** Exclusive; null: to the end of the list. */
  createdBefore: string | null;
  /** The list shows every object within the bounds, so that one which it does not show should not exist. */
  isClosed: boolean;
  /** The last part of the history in this cycle of the rotation. */
  closesCycle: boolean;
  /** The reason for reading it, for people. */
  reason: string;
}

/** The resources whose lists hold the history, in reading order: customers first, since the others belong to them. */
export const slicedResources: readonly Resource[] = [
  ...mirrorResources.filter(({ owner }) => owner === "id"),
  ...mirrorResources.filter(({ owner }) => owner !== "id"),
].map(({ name }) => name);

type SliceParts = Pick<Slice, "step" | "resource" | "reason"> &
  Partial<Pick<Slice, "createdFrom" | "createdBefore" | "isClosed" | "closesCycle" | "direction">> & {
    filter?: Record<string, string>;
    /** Replaces the list's default expansions. */
    expand?: string;
  };

export function slice({ step, resource, reason, filter = {}, expand, ...rest }: SliceParts): Slice {
  const { service } = resourceNamed(resource);
  const embedded = expand ?? service.expand?.list ?? "";
  return {
    step,
    resource,
    reason,
    path: service.list.path,
    direction: "newest_first",
    createdFrom: null,
    createdBefore: null,
    isClosed: false,
    closesCycle: false,
    ...rest,
    filter: {
      ...service.filter,
      ...filter,
      ...(embedded === "" ? {} : { expand: embedded }),
    },
  };
}

/** Whether the service can filter a resource's list by creation time, which it cannot for subscriptions. */
export const isListedByDate = (resource: Resource): boolean =>
  Object.hasOwn(resourceNamed(resource).service.list.query.shape, "created_at[gte]");

/** The query of a slice's first page. Without date filters, the creation times shown decide where a walk ends. */
export function sliceQuery(
  { resource, filter, direction, createdFrom, createdBefore }: Slice,
  limit: number,
): Record<string, string> {
  const query: Record<string, string> = { ...filter, limit: String(limit) };
  if (direction === "oldest_first") query["sort"] = "created_at[asc]";
  if (!isListedByDate(resource)) return query;
  if (createdFrom !== null) query["created_at[gte]"] = createdFrom;
  if (createdBefore !== null) query["created_at[lt]"] = createdBefore;
  return query;
}

/** A time in the form of slice bounds. */
export function boundText(at: Date): string {
  const text = canonicalTimestamp(at.toISOString());
  if (text === null) throw new RangeError("the time must lie between the years 0001 and 9999");
  return text;
}

/** The table in schema `mirror` that holds a resource. */
export const mirrorTableOf = (resource: Resource): string => resourceNamed(resource).table;

/** SQL condition on rows `m` of a resource's table: leaves out those known to be deleted at the service. */
export function andNotAbsent(resource: Resource): string {
  const { absence } = resourceNamed(resource);
  return absence === undefined ? "" : `and not (${absence.isAbsent((column) => `m.${column}`)})`;
}
