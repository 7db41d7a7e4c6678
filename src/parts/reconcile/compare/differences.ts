import {
  type DifferentGroup,
  type DifferentObject,
  contentDiffers,
} from "../../../core/mirror/compare/compare-states.ts";
import { isSameJson } from "../../../core/mirror/compare/field-changes.ts";
import { impersonalValue } from "../../../core/mirror/privacy/personal-data.ts";
import { groupNamed, resourceNamed } from "../../../core/mirror/resources.ts";
import { type MirrorResource, bookedFields } from "../../../core/mirror/resources/resource.ts";
import { canonicalTimestamp } from "../../../core/contract/timestamp.ts";
import { isObject } from "../../../core/contract/wire-types.ts";
import type { Difference } from "../findings/findings.ts";

type Json = Readonly<Record<string, unknown>>;

/** Fields with the time of a change, not its content. */
export const changeTimeFields: ReadonlySet<string> = new Set(["source_updated_at", "version", "updated_at"]);

/** The differing fields with both values, money first, without personal values. */
export function differencesOf(object: DifferentObject): Difference[] {
  const resource = resourceNamed(object.resource);
  return wholeDifferencesOf(object).map((difference) => withoutPersonalData(resource, difference));
}

/** The same with personal values, for a visitor who may see them: never to be stored. */
export function wholeDifferencesOf(object: DifferentObject): Difference[] {
  const resource = resourceNamed(object.resource);
  const booked = bookedFields(resource);
  const fields = new Map<string, Difference>();
  for (const group of object.groups) {
    for (const difference of groupDifferences(object, group)) {
      fields.set(difference.field, difference);
    }
  }
  return [...fields.values()].sort((a, b) => rank(booked, a.field) - rank(booked, b.field));
}

/**
 * The differences of a group that are new to the mirror. It holds a transaction twice: as itself and as embedded in its
 * order. What one of the two already has was not missed.
 */
export function newDifferences(object: DifferentObject, group: DifferentGroup): Difference[] {
  const differences = groupDifferences(object, group);
  if (object.resource !== "transaction") return differences;
  const other = (group.state.group === "transaction" ? object.stored?.["inline"] : object.stored?.["data"]) as
    | Json
    | null
    | undefined;
  return differences.filter(({ field, service }) =>
    // Columns hold the values of the newer of the two: where a column is wrong, the mirror is wrong.
    group.columns.includes(field) ? !changeTimeFields.has(field) : !isSameJson(other?.[field], service),
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
    .filter((field) => !known.has(field) && !isSameJson(service[field], mirror[field]))
    .map((field) => ({ field, service: service[field] ?? null, mirror: mirror[field] ?? null }));
}

const rank = (booked: readonly string[], field: string): number => {
  const at = booked.indexOf(field);
  return at === -1 ? (changeTimeFields.has(field) ? booked.length + 1 : booked.length) : at;
};

/** Personal data is not copied into findings: the name of the field is enough. */
function withoutPersonalData(resource: MirrorResource, { field, ...sides }: Difference): Difference {
  const [service, mirror] = [sides.service, sides.mirror].map((value) => shownValue(resource, field, value));
  // Where both show the same, what differs is in the part that is not shown.
  const isWhole = isSameJson(service, sides.service) && isSameJson(mirror, sides.mirror);
  const isHidden = !isWhole && isSameJson(service, mirror);
  return {
    field,
    service: isHidden && !isAbsent(service) ? hidden : service,
    mirror: isHidden && !isAbsent(mirror) ? hidden : mirror,
  };
}

/** Replaces a personal value that differs. */
export const hidden = "(differs)";

function shownValue(resource: MirrorResource, field: string, value: unknown): unknown {
  if (isAbsent(value)) return null;
  if (changeTimeFields.has(field)) return value;
  const shown = impersonalValue(resource, field, value);
  return shown === undefined ? hidden : shown;
}

/** The database prints times in another form than states have them. */
const inFixedForm = (value: unknown): unknown =>
  typeof value === "string" ? (canonicalTimestamp(value) ?? value) : value;

const isAbsent = (value: unknown): boolean => value === null || value === undefined;
