import type { z } from "zod";
import { canonicalTimestamp } from "../../contract/timestamp.ts";
import { asObject, isWireId, missingKeys, wireId } from "../../contract/wire-types.ts";
import { storable } from "../../platform/postgres/values.ts";
import type { Decoded, Observation } from "../snapshot.ts";

/** The columns that a group of fields owns, with their SQL types. */
export interface GroupDefinition {
  versionColumn: string;
  columns: Readonly<Record<string, string>>;
  /** Holds the group's canonical content. */
  contentColumn?: string;
  /** Whether every state of the group is kept in `mirror.versions`. */
  inHistory: boolean;
}

/** Gives the SQL of a column of the row as it will be. */
export type RowExpression = (column: string) => string;

/** A table of the mirror, as the groups of fields that its rows are made of. */
export interface MirrorTable {
  name: "orders" | "transactions" | "subscriptions" | "customers";
  core: string;
  /** The core group sets `source_updated_at` and `content_hash`, too. */
  groups: Readonly<Record<string, GroupDefinition>>;
  /** Columns that the core owns once it was seen, and until then the group named here. */
  shared?: { with: string; columns: Readonly<Record<string, string>> };
  /** Columns that depend on several groups: functions of the winners, so that order does not matter. */
  computed?: Readonly<Record<string, (row: RowExpression) => string>>;
  /** What a look at the core shows of computed columns; given the fields of the core (`groupFields`, `content`). */
  shown?: Readonly<Record<string, (core: RowExpression) => string>>;
}

export interface NamedGroup extends GroupDefinition {
  group: string;
  /** Begins the names of what a statement is given of it. */
  prefix: string;
}

export const namedGroups = (table: MirrorTable): NamedGroup[] =>
  Object.entries(table.groups).map(([group, definition]) => ({
    ...definition,
    group,
    prefix: `${definition.versionColumn}_`,
  }));

/** What is known of an object once its id, its version and its money were read. */
export interface Readable {
  id: string;
  updatedAt: string;
}

/**
 * Reads what a state cannot do without. `required` holds the fields that decide: an object without one of them
 * is thin, with an unreadable one it is dead. All other fields are kept as they come.
 */
export function readObject(
  required: z.ZodObject,
  observation: Observation,
): ({ ok: true } & Readable) | Extract<Decoded, { ok: false }> {
  const { object } = observation;
  const id = wireId.safeParse(Object.hasOwn(object, "id") ? object["id"] : undefined);
  if (!id.success) return unreadable("id", id.error);
  if (missingKeys(required, object).length > 0) {
    return { ok: false, thin: true, id: id.data, states: [] };
  }
  const parsed = required.safeParse(object);
  if (!parsed.success) return unreadable("", parsed.error);
  const updatedAt = versionTime(observation);
  if (updatedAt === null) {
    return { ok: false, thin: false, reason: "updated_at: is no ISO 8601 date-time with offset" };
  }
  return { ok: true, id: id.data, updatedAt };
}

/** Names the first field that cannot be read. Never its value, which may be anything. */
export function unreadable(at: string, { issues: [issue] }: z.ZodError) {
  const path = [...(at === "" ? [] : [at]), ...(issue?.path ?? [])].join(".");
  const reason = `${path}: ${issue?.message ?? "cannot be read"}`;
  return { ok: false, thin: false, reason } as const;
}

/** The object's own `updated_at`; only where it has none, the event's time stands in. */
export function versionTime({
  object,
  fallbackUpdatedAt: fallback,
}: Pick<Observation, "object" | "fallbackUpdatedAt">): string | null {
  const own = Object.hasOwn(object, "updated_at") ? object["updated_at"] : null;
  if (own === null || own === undefined) {
    return fallback === null ? null : canonicalTimestamp(fallback);
  }
  return typeof own === "string" ? canonicalTimestamp(own) : null;
}

/**
 * Columns are projections for people and reports: a field of an unexpected type is null there and stays as it
 * came in `data`. What must be readable (id, version, money) was checked before.
 */
type Source = Readonly<Record<string, unknown>>;

export function textColumn(source: Source, key: string): string | null {
  const value = source[key];
  return typeof value === "string" ? storable(value) : null;
}

/** Of a status, a type or a currency: twice the longest that is known. */
const maxCodeLength = 40;

/**
 * A status, a type or a currency. The service may make up others, and they stand in an index beside two ids: so
 * long as here, the widest characters leave room. All of it stands in `data`.
 */
export function codeColumn(source: Source, key: string): string | null {
  const text = textColumn(source, key);
  if (text === null || text.length <= maxCodeLength) return text;
  return Array.from(text).slice(0, maxCodeLength).join("");
}

/** The same in SQL, of a text expression. */
export const codeSql = (text: string): string => `left(${text}, ${maxCodeLength})`;

/** Ids are indexed: what is none, or too long for an index, is null. */
export function idColumn(source: Source, key: string): string | null {
  const value = source[key];
  return isWireId(value) ? value : null;
}

const maxInteger = 2_147_483_647;

/** Fits an `integer` column. */
export function integerColumn(source: Source, key: string): number | null {
  const value = source[key];
  return Number.isInteger(value) && Math.abs(value as number) <= maxInteger
    ? (value as number)
    : null;
}

/** Minor units, exact. */
export function moneyColumn(source: Source, key: string): number | null {
  const value = source[key];
  return Number.isSafeInteger(value) ? (value as number) : null;
}

export function timeColumn(source: Source, key: string): string | null {
  const value = source[key];
  return typeof value === "string" ? canonicalTimestamp(value) : null;
}

/** A nested object, or an empty one. */
export const objectAt = (source: Source, key: string): Source => asObject(source[key]) ?? {};

/** The card as orders, transactions and subscriptions summarise it. */
export function cardColumns(source: Source) {
  const card = objectAt(source, "payment_method");
  return {
    payment_method_id: idColumn(card, "id"),
    card_brand: textColumn(card, "card_brand"),
    card_last_four: textColumn(card, "card_last_four"),
  };
}
