import {
  type DifferentGroup,
  type DifferentObject,
  contentDiffers,
} from "../../mirror/compare/compare-states.ts";
import { withoutPersonalField } from "../../mirror/privacy/personal-data.ts";
import { groupNamed, resourceNamed } from "../../mirror/resources.ts";
import { type MirrorResource, allColumns, bookedFields } from "../../mirror/resources/resource.ts";
import { canonicalTimestamp } from "../../contract/timestamp.ts";
import { isObject } from "../../contract/wire-types.ts";
import { redacted } from "../../platform/redaction.ts";
import type { Difference } from "../findings/findings.ts";

type Json = Readonly<Record<string, unknown>>;

/** Fields that say when an object changed, not what changed. */
export const changeTimeFields: ReadonlySet<string> = new Set([
  "source_updated_at",
  "version",
  "updated_at",
]);

/** Which fields differ, and how, money first. Pure. */
export function differencesOf(object: DifferentObject): Difference[] {
  const resource = resourceNamed(object.resource);
  const booked = bookedFields(resource);
  const fields = new Map<string, Difference>();
  for (const group of object.groups) {
    for (const difference of groupDifferences(object, group)) {
      fields.set(difference.field, difference);
    }
  }
  return [...fields.values()]
    .sort((a, b) => rank(booked, a.field) - rank(booked, b.field))
    .map((difference) => withoutPersonalData(resource, difference));
}

/**
 * The differences of a group that are new to the mirror. It holds a transaction twice: as itself and as embedded in its
 * order. What one of the two already has was not missed. Pure.
 */
export function newDifferences(object: DifferentObject, group: DifferentGroup): Difference[] {
  const differences = groupDifferences(object, group);
  if (object.resource !== "transaction") return differences;
  const other = (
    group.state.group === "transaction" ? object.stored?.["inline"] : object.stored?.["data"]
  ) as Json | null | undefined;
  return differences.filter(({ field, service }) =>
    // Columns hold the values of the newer of the two: where a column is wrong, the mirror is wrong.
    group.columns.includes(field) ? !changeTimeFields.has(field) : !isSame(other?.[field], service),
  );
}

function groupDifferences(
  { stored }: DifferentObject,
  { state, columns, storedVersion }: DifferentGroup,
): Difference[] {
  const shown = JSON.parse(state.json) as unknown;
  const content: Json = isObject(shown) ? shown : {};
  const fromColumns = stored === null ? Object.keys(state.columns) : columns;
  const fields = fromColumns
    .filter((column) => column !== contentDiffers)
    .map((field) => ({
      field,
      service: state.columns[field] ?? content[field] ?? null,
      mirror: inFixedForm(stored?.[field] ?? null),
    }))
    .filter(({ service, mirror }) => stored !== null || service !== null || mirror !== null);
  if (!columns.includes(contentDiffers) || storedVersion === "") return fields;
  const known = new Set(fields.map(({ field }) => field));
  return [...fields, ...contentDifferences(state.group, shown, stored, known)];
}

function contentDifferences(
  group: string,
  shown: unknown,
  stored: Json | null,
  known: ReadonlySet<string>,
): Difference[] {
  const column = groupNamed(group)?.definition.contentColumn ?? "data";
  const here = stored?.[column] ?? null;
  if (column === "items") return [{ field: "items", service: shown, mirror: here }];
  const [service, mirror] = [(shown ?? {}) as Json, (here ?? {}) as Json];
  return [...new Set([...Object.keys(service), ...Object.keys(mirror)])]
    .filter((field) => !known.has(field) && !isSame(service[field], mirror[field]))
    .map((field) => ({ field, service: service[field] ?? null, mirror: mirror[field] ?? null }));
}

/** Equality of JSON values, ignoring the order of keys; an absent value equals null. */
function isSame(a: unknown, b: unknown): boolean {
  if (a === b || ((a ?? null) === null && (b ?? null) === null)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) => isSame((a as Json)[key], (b as Json)[key]));
}

const rank = (booked: readonly string[], field: string): number => {
  const at = booked.indexOf(field);
  return at === -1 ? (changeTimeFields.has(field) ? booked.length + 1 : booked.length) : at;
};

/** Personal data is not copied into findings: the name of the field is enough. */
function withoutPersonalData(
  resource: MirrorResource,
  { field, ...sides }: Difference,
): Difference {
  const [service, mirror] = [sides.service, sides.mirror].map((value) =>
    shownValue(resource, field, value),
  );
  // Where both show the same, what differs is in the part that is not shown.
  const isWhole = isSame(service, sides.service) && isSame(mirror, sides.mirror);
  const isHidden = !isWhole && isSame(service, mirror);
  return {
    field,
    service: isHidden && !isAbsent(service) ? hidden : service,
    mirror: isHidden && !isAbsent(mirror) ? hidden : mirror,
  };
}

const hidden = "(differs)";

/**
 * A column says of itself whether it is personal. Of all other fields, also those that nobody knows yet, only what
 * survives an erasure is shown.
 */
function shownValue(resource: MirrorResource, field: string, value: unknown): unknown {
  if (isAbsent(value)) return null;
  if (changeTimeFields.has(field)) return value;
  const holds = allColumns(resource)[field]?.holds;
  if (holds !== undefined) return holds === "personal" ? hidden : value;
  const kept = withoutPersonalField(field, value);
  const isNothing = kept === undefined || kept === redacted || JSON.stringify(kept) === "{}";
  return isNothing ? hidden : kept;
}

/** The database prints times in another form than states have them. */
const inFixedForm = (value: unknown): unknown =>
  typeof value === "string" ? (canonicalTimestamp(value) ?? value) : value;

const isAbsent = (value: unknown): boolean => value === null || value === undefined;
