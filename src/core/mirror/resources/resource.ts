import type { z } from "zod";
import type { ListEndpoint, ReadById } from "../../contract/endpoint.ts";
import { canonicalTimestamp } from "../../contract/timestamp.ts";
import { asObject, canonicalCurrency, isWireId, missingKeys, wireId } from "../../contract/wire-types.ts";
import { currencyDigits } from "../../../platform/money.ts";
import { storable } from "../../../platform/postgres/values.ts";
import type { SurvivingKeys } from "../privacy/kinds.ts";
import type { Column, Decoded, GroupState, Snapshot, Resource } from "../snapshot.ts";
import { statusRank } from "../version.ts";

/**
 * The complete definition of a resource. How its objects are read from the service, stored, compared, healed,
 * reconciled and erased follows from it. A new resource needs its contract, its table in a migration, one such
 * definition with its name in `ResourceNames`, its line in resources.ts, and resources.sql generated again
 * (docs/extend.md). test/mirror/made-up-resource.test.ts adds one. The delivery statement counts its changes only if
 * reports/base/last-changes.sql knows their events.
 */
export interface MirrorResource {
  /** Used in events, findings and the history, such as `order`. The core group has the same name. */
  name: Resource;
  /**
   * In schema `mirror`. In addition to its groups' columns (among them a `created_at`), it has `id`,
   * `source_updated_at`, `content_hash`, `deleted_at` and `last_cause`.
   */
  table: string;
  service: {
    /** The endpoints that list the objects and that read one by its id. */
    list: ListEndpoint;
    object: ReadById;
    /** Expansions that make the answer complete. */
    expand?: { object?: string; list?: string };
    /** Makes the list include objects that it leaves out by default. */
    filter?: Readonly<Record<string, string>>;
  };
  /** The column with the id of the customer who owns an object; null if it has no owner. */
  owner: "id" | "customer_id" | null;
  /** The core group also sets `source_updated_at` and `content_hash`. */
  groups: Readonly<Record<string, GroupDefinition>>;
  /** Columns that the core owns once it was seen. Until then the group `with` owns them. */
  shared?: { with: string; columns: Columns };
  /** Columns computed from the winning states of several groups, so the order of arrival does not matter. */
  computed?: Readonly<Record<string, (row: RowExpression) => string>>;
  /** SQL for a core snapshot's values of computed columns, from its fields `at` and `content`. */
  shown?: Readonly<Record<string, (core: RowExpression) => string>>;
  /** Fields of its own whose values survive an erasure (privacy/personal-data.ts). All others are redacted. */
  keptOnErasure?: SurvivingKeys;
  /** Set if the service can delete objects for good. Otherwise no object is ever taken for deleted. */
  absence?: Absence;
  /**
   * SQL condition on a row `m`: it may still change, and no new object would show the change. `:failedSince` is bound
   * to the time since which a failed object counts. Left out: no row.
   */
  openCondition?: string;
  /** Fields whose changes the service announces by an event. Left out: none. */
  announcedFields?: ReadonlySet<string>;
  /** The column with the object's amount in minor units. Column `currency` has the currency. */
  amount?: string;
  /** Columns whose values before and after a write decide the kind of change (changes/kinds.ts). */
  watched?: readonly string[];
  /** The names in the interface. Anything else is kept as it comes, and reported by an alert once. */
  known: Known;
  /** Decodes one snapshot without applying it. May throw `NestedTooDeeply`. */
  decode: (observation: Snapshot) => Decoded;
}

/** Names that the interface has for a resource. */
export interface Known {
  /** Its fields, expansions included. */
  fields: ReadonlySet<string>;
  /** For each field, such as `status`: the values that it may have. */
  codes: Readonly<Record<string, ReadonlySet<string>>>;
}

/** The rank of most states. */
export const rankOfStatus = ({ status }: Source): number => statusRank(status);

/** How the mirror records that the service no longer has an object. */
export interface Absence {
  /** The group that records it. */
  group: string;
  /** SQL: the last read did not find the object. */
  isAbsent: (row: RowExpression) => string;
  /** The state of an object that two reads, a grace apart, did not find. `observedAt`: the second answer's `Date`. */
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
  /**
   * How late in the object's life a state comes, 0 to 9, by its content. Orders states with the same time. Left out: 0.
   */
  rank?: (content: Source) => number;
  /** Set if the group never holds personal data. */
  isImpersonal?: boolean;
}

/** The state that the shared columns follow: the core's once it was seen, the other group's until then. */
export const ownerOfShared = <State>(
  { name: core, shared }: Pick<MirrorResource, "name" | "shared">,
  states: ReadonlyMap<string, State>,
): State | undefined => states.get(core) ?? states.get(shared?.with ?? "");

/** Gives the SQL of a column's value in a row: the stored one, or the one to be written. */
export type RowExpression = (column: string) => string;

export interface NamedGroup extends GroupDefinition {
  group: string;
  /** Prefix of the group's names in a statement. */
  prefix: string;
}

export const namedGroups = ({ groups }: MirrorResource): NamedGroup[] =>
  Object.entries(groups).map(([group, definition]) => ({
    ...definition,
    group,
    prefix: `${definition.versionColumn}_`,
  }));

/** The columns that are read from the service's objects, those of every group. */
export const allColumns = ({ groups, shared }: MirrorResource): Columns =>
  Object.assign({}, ...Object.values(groups).map(({ columns }) => columns), shared?.columns) as Columns;

/**
 * The fields that the books rest on: a difference in one of them is serious, and people read it first. The object's
 * amount comes first, then its other money.
 */
export function bookedFields(resource: MirrorResource): string[] {
  const money = Object.entries(allColumns(resource)).flatMap(([name, { holds }]) => (holds === "money" ? [name] : []));
  return [...new Set([resource.amount ?? [], money, "currency", "status"].flat())];
}

/** An object whose id, version and amounts are readable. */
export interface Readable {
  id: string;
  updatedAt: string;
}

/**
 * Reads the fields that a state requires. An object that lacks one of `required` is partial; an object with an
 * unreadable one cannot be stored, and its event is dead. All other fields are kept as they come.
 */
export function readObject(
  required: z.ZodObject,
  observation: Snapshot,
): ({ ok: true } & Readable) | Extract<Decoded, { ok: false }> {
  const { object } = observation;
  const id = Object.hasOwn(object, "id") ? object["id"] : undefined;
  if (!isWireId(id)) return unreadable("id", wireId.safeParse(id).error ?? { issues: [] });
  if (missingKeys(required, object).length > 0) {
    return { ok: false, partial: true, id, states: [] };
  }
  const parsed = required.safeParse(object);
  if (!parsed.success) return unreadable("", parsed.error);
  const updatedAt = versionTime(observation);
  if (updatedAt === null) {
    const reason = "updated_at: must be an ISO 8601 date-time with offset";
    return { ok: false, partial: false, reason };
  }
  return { ok: true, id, updatedAt };
}

/** Names the first unreadable field. Never its value, which may be personal or secret. */
export function unreadable(at: string, { issues: [issue] }: Pick<z.ZodError, "issues">) {
  const path = [...(at === "" ? [] : [at]), ...(issue?.path ?? [])].join(".");
  const reason = `${path}: ${issue?.message ?? "cannot be read"}`;
  return { ok: false, partial: false, reason } as const;
}

/** The object's own `updated_at`; the event's time only if it has none. */
export function versionTime({
  object,
  fallbackUpdatedAt: fallback,
}: Pick<Snapshot, "object" | "fallbackUpdatedAt">): string | null {
  const own = Object.hasOwn(object, "updated_at") ? object["updated_at"] : null;
  if (own === null || own === undefined) {
    return fallback === null ? null : canonicalTimestamp(fallback);
  }
  return typeof own === "string" ? canonicalTimestamp(own) : null;
}

export type Source = Readonly<Record<string, unknown>>;

/**
 * The content of a column. `money`: minor units; a difference is serious. `personal`: identifies a person, or is free
 * text in which people may be named; findings name such a column and never its value. `plain`: all else.
 */
export type Holds = "money" | "personal" | "plain";

/** A column's SQL type, its kind of content, and how its value is read from an object of the service. */
export interface ColumnDefinition {
  type: "text" | "bigint" | "integer" | "boolean" | "timestamptz";
  holds: Holds;
  read: (source: Source, key: string, updatedAt: string) => Column;
  /** In characters: the text is cut to this length. A row of a release that did not cut may hold more. */
  maxLength?: number;
  /** Where the field is nested. */
  within?: { parent: string; key: string };
  /** Always `updatedAt` of the state, so a batch does not send it once more for each row. */
  isTimeOfState?: true;
}

/** A column is read from the field of the same name, unless its definition says otherwise. */
export type Columns = Readonly<Record<string, ColumnDefinition>>;

/** Reads a state's columns from an object. */
export function readColumns(columns: Columns, source: Source, updatedAt: string): Record<string, Column> {
  const values: Record<string, Column> = {};
  for (const name in columns) values[name] = columns[name]?.read(source, name, updatedAt) ?? null;
  return values;
}

/*
 * Columns are projections for people and reports. A field of an unexpected type is null in its column; `data` keeps it
 * as it came. What must be readable (id, version, amounts) was checked before.
 */

/** Text has no kind of its own: each column declares whether it is personal. */
export const plainText: ColumnDefinition = { type: "text", holds: "plain", read: readText };
export const personalText: ColumnDefinition = { type: "text", holds: "personal", read: readText };

function readText(source: Source, key: string): string | null {
  const value = source[key];
  return typeof value === "string" ? storable(value) : null;
}

/** Twice the longest known status or type. */
const maxCodeLength = 40;

/**
 * A status or a type, cut to `maxCodeLength`. The service may add values of any length, and an index holds them
 * together with two ids; this length fits even in the widest characters. `data` keeps the whole value.
 */
export const code: ColumnDefinition = {
  type: "text",
  holds: "plain",
  read: (source, key) => {
    const value = readText(source, key);
    if (value === null || value.length <= maxCodeLength) return value;
    return Array.from(value).slice(0, maxCodeLength).join("");
  },
};

/** A code in the one spelling that a currency has here (`canonicalCurrency`). `data` keeps the one that was sent. */
export const currencyColumn: ColumnDefinition = {
  ...code,
  read: (source, key, updatedAt) => {
    const value = code.read(source, key, updatedAt);
    return typeof value === "string" ? canonicalCurrency(value) : null;
  },
};

/** In the widest characters 2,000 bytes, while an index takes 2,704 of a row. */
const maxIndexedLength = 500;

/** A text with an index, cut to the index's limit. `data` keeps the whole value. */
export const indexed = ({ read, ...definition }: ColumnDefinition): ColumnDefinition => ({
  ...definition,
  maxLength: maxIndexedLength,
  read: (source, key, updatedAt) => {
    const value = read(source, key, updatedAt);
    if (typeof value !== "string" || value.length <= maxIndexedLength) return value;
    return Array.from(value).slice(0, maxIndexedLength).join("");
  },
});

/** Known currencies, as columns spell them. The minor unit of any other is unknown. */
export const knownCurrencies: ReadonlySet<string> = new Set(currencyDigits.keys());

/** The same cut in SQL, for a text expression. */
export const codeSql = (expression: string): string => `left(${expression}, ${maxCodeLength})`;

/** An id. Ids are indexed, so a value that is no id or is too long for an index becomes null. */
export const reference: ColumnDefinition = {
  type: "text",
  holds: "plain",
  read: (source, key) => {
    const value = source[key];
    return isWireId(value) ? value : null;
  },
};

const maxInteger = 2_147_483_647;

/** Fits an `integer` column. */
export const integer: ColumnDefinition = { type: "integer", holds: "plain", read: readInteger };

export function readInteger(source: Source, key: string): number | null {
  const value = source[key];
  return Number.isInteger(value) && Math.abs(value as number) <= maxInteger ? (value as number) : null;
}

/** Minor units, exact. */
export const money: ColumnDefinition = {
  type: "bigint",
  holds: "money",
  read: (source, key) => {
    const value = source[key];
    return Number.isSafeInteger(value) ? (value as number) : null;
  },
};

/** An absent flag is false. */
export const flag: ColumnDefinition = {
  type: "boolean",
  holds: "plain",
  read: (source, key) => source[key] === true,
};

export const time: ColumnDefinition = { type: "timestamptz", holds: "plain", read: readTime };

export function readTime(source: Source, key: string): string | null {
  const value = source[key];
  return typeof value === "string" ? canonicalTimestamp(value) : null;
}

/** When the object last changed: its `updated_at`, or the event's time if it has none (`versionTime`). */
export const changedAt: ColumnDefinition = {
  type: "timestamptz",
  holds: "plain",
  read: (_source, _key, updatedAt) => updatedAt,
  isTimeOfState: true,
};

/** A column read from a nested object. */
export const nested = (parent: string, key: string, { read, ...definition }: ColumnDefinition): ColumnDefinition => ({
  ...definition,
  within: { parent, key },
  read: (source, _key, updatedAt) => read(objectAt(source, parent), key, updatedAt),
});

/** The fields of a schema without these and without `updated_at`: an event that lacks it has its own time instead. */
export const fieldsOf = ({ shape }: z.ZodObject, without?: ReadonlySet<string>): string[] =>
  Object.keys(shape).filter((field) => field !== "updated_at" && without?.has(field) !== true);

/**
 * The fields, nested ones of these columns included, that an event's object lacks: their values are unknown, while null
 * means that there is no value. The canonical text drops both. A read shows every field.
 */
export function absentFieldsOf(
  fields: Iterable<string>,
  columns: Columns,
): (observation: Pick<Snapshot, "observedAt">, source: Source) => readonly string[] {
  const names = [...fields];
  const nestedFields = Object.values(columns).flatMap(({ within }) => within ?? []);
  return ({ observedAt }, source) => {
    if (observedAt !== null) return [];
    const absent = names.filter((name) => source[name] === undefined);
    for (const { parent, key } of nestedFields) {
      const object = asObject(source[parent]);
      if (object !== undefined && object[key] === undefined) absent.push(`${parent}.${key}`);
    }
    return absent;
  };
}

/** A nested object, or an empty one. */
export const objectAt = (source: Source, key: string): Source => asObject(source[key]) ?? {};

/** The card as orders, transactions and subscriptions summarise it. */
export const cardColumns = {
  payment_method_id: nested("payment_method", "id", reference),
  card_brand: nested("payment_method", "card_brand", plainText),
  card_last_four: nested("payment_method", "card_last_four", indexed(plainText)),
} satisfies Columns;
