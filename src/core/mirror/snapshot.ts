import { type Content, contentHash } from "./canonical.ts";
import { type VersionParts, isPlausibleAt, versionOf } from "./version.ts";

/** Each resource declares its name in resources/<name>.ts, so that a misspelt name is a compile error. */
export interface ResourceNames {}

export type Resource = keyof ResourceNames;

export interface ObjectKey {
  resource: Resource;
  id: string;
}

/** The fields of an object in which card numbers were masked. */
export interface MaskedCardNumbers extends ObjectKey {
  paths: readonly string[];
}

/** A snapshot: what one event or one answer of the service shows of an object. */
export interface Snapshot {
  resource: Resource;
  object: Readonly<Record<string, unknown>>;
  /** Dates the state if the object has no `updated_at`: the event's `created_at`. */
  fallbackUpdatedAt: string | null;
  /** The service's `Date` of the answer, fixed form; null for an event. */
  observedAt: string | null;
  /**
   * When it was received: the `Date` of an answer, the arrival of an event. Fixed form. A state dated much later is not
   * believed. Without this time, every state is believed.
   */
  receivedAt?: string | null;
  /** `event:<seq>`, `fetch`, `import`, `reconcile:<run>` or `heal`. */
  cause: string;
  /** Set if card numbers in `object` were masked already. */
  maskedCardNumbers?: MaskedCardNumbers;
}

/** The snapshot of an answer of the service. `observedAt`: the answer's `Date`, fixed form. */
export const snapshotFrom = (
  resource: Resource,
  object: Snapshot["object"],
  observedAt: string | null,
  cause: string,
): Snapshot => ({
  resource,
  object,
  fallbackUpdatedAt: null,
  observedAt,
  receivedAt: observedAt,
  cause,
});

export type Column = string | number | boolean | null;

/** The state of one group of fields: the unit that wins or loses as a whole. */
export interface GroupState {
  /** `order`, `order.dunning`, `transaction.inline`, …: also `resource` in `mirror.versions`. */
  readonly group: string;
  readonly id: string;
  /** Made by `versionOf`. The higher version wins. */
  readonly version: string;
  /** The time at the start of the version. For an entry of an order, the order's if that is later. Fixed form. */
  readonly changedAt: string;
  /** `updated_at` of the object itself, fixed form: `source_updated_at` in the history. */
  readonly updatedAt: string;
  readonly observedAt: string | null;
  /** False for a state dated in the future. It is kept in `mirror.unbelieved`, and no row shows it. */
  readonly isBelieved: boolean;
  /** `contentHash` of the content. */
  readonly hash: string;
  /** Canonical content as JSON: the history's `data`. */
  readonly json: string;
  /** Whether text that `jsonb` refuses became U+FFFD. Not part of the content: equal states may differ in it. */
  readonly isReplaced: boolean;
  /** Whether the object that showed the state may hold card numbers, so that it must be masked. */
  readonly mayHoldCardNumber: boolean;
  /** Card numbers masked in that object; null if there were none. Not part of the content. */
  readonly maskedCardNumbers: MaskedCardNumbers | null;
  /** The columns of the mirror's row that this group owns. */
  readonly columns: Readonly<Record<string, Column>>;
  readonly cause: string;
  /** Fields of the interface that the event lacked, nested ones with a dot: their values are unknown. */
  readonly absentFields: readonly string[];
  /** The object whose read confirms a tie of this group; null if its ties need no read, or no read shows the group. */
  readonly confirmedBy: ObjectKey | null;
  /** Replaces the content, for redaction. Hash and version follow the new content. */
  replaceContent(json: string, columns: Readonly<Record<string, Column>>): void;
}

export type Decoded =
  | { ok: true; id: string; states: GroupState[]; unread: ObjectKey[] }
  /** A partial object: it lacks required fields, and orders a refetch. `states`: those of groups that no read shows. */
  | { ok: false; partial: true; id: string; states: GroupState[] }
  /** The id, the version or an amount is unreadable. */
  | { ok: false; partial: false; reason: string };

interface GroupParts {
  group: string;
  id: string;
  updatedAt: string;
  /** For an entry of an order: the times that its version starts with, instead of `updatedAt`. */
  orderedBy?: Pick<VersionParts, "updatedAt" | "within">;
  rank: number;
  content: Content;
  confirmedBy: ObjectKey | null;
  absentFields?: readonly string[];
}

type Shown = Pick<Snapshot, "observedAt" | "receivedAt" | "cause" | "maskedCardNumbers">;

/** Combines a group's content and columns with the version that orders it. */
export function groupState(
  observation: Shown,
  parts: GroupParts,
  columns: Readonly<Record<string, Column>>,
): GroupState {
  return new LazyState(observation, parts, columns);
}

const noFields: readonly string[] = [];

/** Hashes on demand: most objects of a nightly run equal the stored text and needs no hash. */
class LazyState implements GroupState {
  readonly group: string;
  readonly id: string;
  readonly changedAt: string;
  readonly updatedAt: string;
  readonly observedAt: string | null;
  readonly isBelieved: boolean;
  readonly isReplaced: boolean;
  readonly mayHoldCardNumber: boolean;
  readonly maskedCardNumbers: MaskedCardNumbers | null;
  readonly cause: string;
  readonly absentFields: readonly string[];
  readonly confirmedBy: ObjectKey | null;
  json: string;
  columns: Readonly<Record<string, Column>>;
  readonly #rank: number;
  readonly #within: string | undefined;
  #hash: string | null = null;
  #version: string | null = null;

  constructor(
    { observedAt, receivedAt, cause, maskedCardNumbers }: Shown,
    { group, id, updatedAt, orderedBy, rank, content, confirmedBy, absentFields = noFields }: GroupParts,
    columns: Readonly<Record<string, Column>>,
  ) {
    this.group = group;
    this.id = id;
    this.changedAt = orderedBy?.updatedAt ?? updatedAt;
    this.updatedAt = updatedAt;
    this.observedAt = observedAt;
    const seenAt = receivedAt ?? null;
    this.isBelieved = seenAt === null || (isPlausibleAt(this.changedAt, seenAt) && isPlausibleAt(updatedAt, seenAt));
    this.isReplaced = content.isReplaced;
    this.mayHoldCardNumber = content.mayHoldCardNumber;
    this.maskedCardNumbers = maskedCardNumbers ?? null;
    this.cause = cause;
    this.confirmedBy = confirmedBy;
    this.absentFields = absentFields;
    this.json = content.json;
    this.columns = columns;
    this.#rank = rank;
    this.#within = orderedBy?.within;
  }

  get hash(): string {
    return (this.#hash ??= contentHash(this.json));
  }

  get version(): string {
    return (this.#version ??= versionOf({
      updatedAt: this.changedAt,
      within: this.#within,
      observedAt: this.observedAt,
      rank: this.#rank,
      hash: this.hash,
    }));
  }

  replaceContent(json: string, columns: GroupState["columns"]): void {
    this.json = json;
    this.columns = columns;
    this.#hash = null;
    this.#version = null;
  }
}
