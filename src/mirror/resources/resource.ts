import type { z } from "zod";
import type { ListEndpoint, ReadById } from "../../contract/endpoint.ts";
import { canonicalTimestamp } from "../../contract/timestamp.ts";
import { asObject, isWireId, missingKeys, wireId } from "../../contract/wire-types.ts";
import { storable } from "../../platform/postgres/values.ts";
import type { Stays } from "../privacy/kinds.ts";
import type { Column, Decoded, GroupState, Observation, Resource } from "../snapshot.ts";

/**
 * All that is known of a resource. From it is derived how its objects are read from the service, stored, compared,
 * healed, reconciled and erased: a new resource is its contract, its table in a migration, one of these, and its line in
 * resources.ts. test/mirror/made-up-resource.test.ts adds one.
 */
export interface MirrorResource {
  /** As events, findings and the history name it: `order`. The group of its core bears the same name. */
  name: Resource;
  /**
   * In schema `mirror`. Beside the columns of its groups it has `id`, `created_at`, `source_updated_at`, `content_hash`,
   * `deleted_at` and `last_cause`.
   */
  table: string;
  service: {
    /** Where the service lists its objects, and where it shows one. */
    list: ListEndpoint;
    object: ReadById;
    /** What must be embedded so that the answer is whole. */
    expand?: { object?: string; list?: string };
    /** Shows what the list hides unless it is asked for. */
    filter?: Readonly<Record<string, string>>;
  };
  /** The column that says whose an object is: of a person, `id`; null where it is nobody's. */
  owner: "id" | "customer_id" | null;
  /** The core group sets `source_updated_at` and `content_hash`, too. */
  groups: Readonly<Record<string, GroupDefinition>>;
  /** Columns that the core owns once it was seen, and until then the group named here. */
  shared?: { with: string; columns: Columns };
  /** Columns that depend on several groups: functions of the winners, so that order does not matter. */
  computed?: Readonly<Record<string, (row: RowExpression) => string>>;
  /** What a look at the core shows of computed columns; given the fields of the core (`groupFields`, `content`). */
  shown?: Readonly<Record<string, (core: RowExpression) => string>>;
  /** Its own fields whose values stay when a person is erased (privacy/personal-data.ts). Of all others nothing does. */
  stays?: Stays;
  /** Where objects can be gone from the service for good. Left out: what is gone is never believed to be. */
  absence?: Absence;
  /**
   * What may still change without a new object that would show it, as an SQL condition on a row `m`. Bound as
   * `:failedSince` is the time since which a failed object counts. Left out: nothing.
   */
  openItems?: string;
  /** Fields whose change has an event that the interface names (spec, Events). Left out: none has. */
  announced?: ReadonlySet<string>;
  /** The column of what an object is worth, in the currency of column `currency`. */
  amount?: string;
  /** Reads one observation without applying it. Pure; may throw `NestedTooDeeply`. */
  decode: (observation: Observation) => Decoded;
}

/** How it is known that the service has an object no more. */
export interface Absence {
  /** Its group. */
  group: string;
  /** SQL: the object was last seen not to be there. */
  isAbsent: (row: RowExpression) => string;
  /** The service did not know the object, twice, a grace apart. `observedAt`: the second answer's `Date`. */
  state: (id: string, observedAt: string, cause: string) => GroupState;
}

/** The columns that a group of fields owns. */
export interface GroupDefinition {
  versionColumn: string;
  columns: Columns;
  /** Holds the group's canonical content. */
  contentColumn?: string;
  /** Whether every state of the group is kept in `mirror.versions`. */
  inHistory: boolean;
  /** Holds nothing personal, whoever it is of. */
  isImpersonal?: boolean;
}

/** Gives the SQL of a column of the row as it will be. */
export type RowExpression = (column: string) => string;

export interface NamedGroup extends GroupDefinition {
  group: string;
  /** Begins the names of what a statement is given of it. */
  prefix: string;
}

export const namedGroups = ({ groups }: MirrorResource): NamedGroup[] =>
  Object.entries(groups).map(([group, definition]) => ({
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

type Source = Readonly<Record<string, unknown>>;

/** A column, once: its SQL type, and how its value is read from an object of the service. */
export interface ColumnDefinition {
  type: "text" | "bigint" | "integer" | "boolean" | "timestamptz";
  read: (source: Source, key: string, updatedAt: string) => Column;
}

/** By name. What no other place says is read from the object's field of the same name. */
export type Columns = Readonly<Record<string, ColumnDefinition>>;

/** The columns of a state, as an object shows them. */
export function readColumns(
  columns: Columns,
  source: Source,
  updatedAt: string,
): Record<string, Column> {
  const values: Record<string, Column> = {};
  for (const name in columns) values[name] = columns[name]?.read(source, name, updatedAt) ?? null;
  return values;
}

/*
 * Columns are projections for people and reports: a field of an unexpected type is null there and stays as it
 * came in `data`. What must be readable (id, version, money) was checked before.
 */

export const text: ColumnDefinition = { type: "text", read: readText };

function readText(source: Source, key: string): string | null {
  const value = source[key];
  return typeof value === "string" ? storable(value) : null;
}

/** Of a status, a type or a currency: twice the longest that is known. */
const maxCodeLength = 40;

/**
 * A status, a type or a currency. The service may make up others, and they stand in an index beside two ids: so
 * long as here, the widest characters leave room. All of it stands in `data`.
 */
export const code: ColumnDefinition = {
  type: "text",
  read: (source, key) => {
    const value = readText(source, key);
    if (value === null || value.length <= maxCodeLength) return value;
    return Array.from(value).slice(0, maxCodeLength).join("");
  },
};

/** The same in SQL, of a text expression. */
export const codeSql = (expression: string): string => `left(${expression}, ${maxCodeLength})`;

/** An id. Ids are indexed: what is none, or too long for an index, is null. */
export const reference: ColumnDefinition = {
  type: "text",
  read: (source, key) => {
    const value = source[key];
    return isWireId(value) ? value : null;
  },
};

const maxInteger = 2_147_483_647;

/** Fits an `integer` column. */
export const integer: ColumnDefinition = { type: "integer", read: readInteger };

export function readInteger(source: Source, key: string): number | null {
  const value = source[key];
  return Number.isInteger(value) && Math.abs(value as number) <= maxInteger
    ? (value as number)
    : null;
}

/** Minor units, exact. */
export const money: ColumnDefinition = {
  type: "bigint",
  read: (source, key) => {
    const value = source[key];
    return Number.isSafeInteger(value) ? (value as number) : null;
  },
};

/** What is not said is not so. */
export const flag: ColumnDefinition = {
  type: "boolean",
  read: (source, key) => source[key] === true,
};

export const time: ColumnDefinition = { type: "timestamptz", read: readTime };

export function readTime(source: Source, key: string): string | null {
  const value = source[key];
  return typeof value === "string" ? canonicalTimestamp(value) : null;
}

/** When the state says that it changed, also where the event's time stands in for the object's own. */
export const changedAt: ColumnDefinition = {
  type: "timestamptz",
  read: (_source, _key, updatedAt) => updatedAt,
};

/** A column that is read from a nested object. */
export const within = (
  parent: string,
  key: string,
  { type, read }: ColumnDefinition,
): ColumnDefinition => ({
  type,
  read: (source, _key, updatedAt) => read(objectAt(source, parent), key, updatedAt),
});

/** A nested object, or an empty one. */
export const objectAt = (source: Source, key: string): Source => asObject(source[key]) ?? {};

/** The card as orders, transactions and subscriptions summarise it. */
export const cardColumns = {
  payment_method_id: within("payment_method", "id", reference),
  card_brand: within("payment_method", "card_brand", text),
  card_last_four: within("payment_method", "card_last_four", text),
} satisfies Columns;
