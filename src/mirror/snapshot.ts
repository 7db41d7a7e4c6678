import { type Content, contentHash } from "./canonical.ts";
import { type VersionParts, isPlausibleAt, versionOf } from "./version.ts";

/** Each resource adds its name where it is described (resources/<name>.ts), so that a misspelt one is an error. */
export interface ResourceNames {}

export type Resource = keyof ResourceNames;

/** One object of the service. */
export interface ObjectKey {
  resource: Resource;
  id: string;
}

/** Where in an object of the service card numbers stood, which were masked. */
export interface MaskedCardNumbers extends ObjectKey {
  paths: readonly string[];
}

/** One state of one object, as an event, a read, an import or a repair shows it. */
export interface Observation {
  resource: Resource;
  object: Readonly<Record<string, unknown>>;
  /** The object's state as of this time if it has no `updated_at` of its own: the event's `created_at`. */
  fallbackUpdatedAt: string | null;
  /** The service's `Date` of the answer, fixed form; null for an event. */
  observedAt: string | null;
  /**
   * When it was received, by the service's clock, fixed form: of an answer its `Date`. What is dated much later is not
   * believed; left out or null: everything is.
   */
  receivedAt?: string | null;
  /** `event:<seq>`, `fetch`, `import` or `reconcile:<run>`. */
  cause: string;
  /** Of an `object` in which card numbers were masked already. */
  maskedCardNumbers?: MaskedCardNumbers;
}

/** A state as an answer shows it that bears this `Date` of the service's, in the fixed form. */
export const observed = (
  resource: Resource,
  object: Observation["object"],
  observedAt: string | null,
  cause: string,
): Observation => ({
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
  /** `order`, `order.dunning`, `transaction.inline`, …: also the name under which history keeps it. */
  readonly group: string;
  readonly id: string;
  /** What decides: `versionOf`. */
  readonly version: string;
  /** The time that the version begins with. */
  readonly changedAt: string;
  /** When the group says that it changed, fixed form. */
  readonly updatedAt: string;
  readonly observedAt: string | null;
  /** Whether it was seen at a time at which it could be so; else it is kept apart, and no row shows it. */
  readonly isBelieved: boolean;
  /** `contentHash` of the content. */
  readonly hash: string;
  /** Canonical content as JSON: the history's `data`. */
  readonly json: string;
  /** Whether text that `jsonb` refuses became U+FFFD. No part of the content: states that differ in it alone are equal. */
  readonly isReplaced: boolean;
  /** Whether card numbers are to be looked for in the object that showed the state. */
  readonly mayHoldCardNumber: boolean;
  /** Of that object; null where there were none. No part of the content either. */
  readonly maskedCardNumbers: MaskedCardNumbers | null;
  /** The columns of the mirror's row that this group owns. */
  readonly columns: Readonly<Record<string, Column>>;
  readonly cause: string;
  /** The object whose read settles a tie of this group; null where no read shows the group. */
  readonly settledBy: ObjectKey | null;
  /** Puts other content in the place of what was shown; hash and version are that content's. */
  replaceContent(json: string, columns: Readonly<Record<string, Column>>): void;
}

export type Decoded =
  | { ok: true; id: string; states: GroupState[]; unread: ObjectKey[] }
  /** Something happened to the object, but its state is not all there: it must be read. `states`: what no read shows. */
  | { ok: false; thin: true; id: string; states: GroupState[] }
  /** Its id, its version or its money cannot be read. */
  | { ok: false; thin: false; reason: string };

interface GroupParts {
  group: string;
  id: string;
  updatedAt: string;
  /** What orders the group, where that is not `updatedAt` alone. */
  orderedBy?: Pick<VersionParts, "updatedAt" | "within">;
  rank: number;
  content: Content;
  settledBy: ObjectKey | null;
}

type Shown = Pick<Observation, "observedAt" | "receivedAt" | "cause" | "maskedCardNumbers">;

/** Puts a group's content and columns together with the version that orders it. */
export function groupState(
  observation: Shown,
  parts: GroupParts,
  columns: Readonly<Record<string, Column>>,
): GroupState {
  return new LazyState(observation, parts, columns);
}

/** Makes the hash when it is asked for: most of what a reconciliation reads is equal, and seen to be by its text. */
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
  readonly settledBy: ObjectKey | null;
  json: string;
  columns: Readonly<Record<string, Column>>;
  readonly #rank: number;
  readonly #within: string | undefined;
  #hash: string | null = null;

  constructor(
    { observedAt, receivedAt, cause, maskedCardNumbers }: Shown,
    { group, id, updatedAt, orderedBy, rank, content, settledBy }: GroupParts,
    columns: Readonly<Record<string, Column>>,
  ) {
    this.group = group;
    this.id = id;
    this.changedAt = orderedBy?.updatedAt ?? updatedAt;
    this.updatedAt = updatedAt;
    this.observedAt = observedAt;
    const seenAt = receivedAt ?? null;
    this.isBelieved =
      seenAt === null ||
      (isPlausibleAt(this.changedAt, seenAt) && isPlausibleAt(updatedAt, seenAt));
    this.isReplaced = content.isReplaced;
    this.mayHoldCardNumber = content.mayHoldCardNumber;
    this.maskedCardNumbers = maskedCardNumbers ?? null;
    this.cause = cause;
    this.settledBy = settledBy;
    this.json = content.json;
    this.columns = columns;
    this.#rank = rank;
    this.#within = orderedBy?.within;
  }

  get hash(): string {
    return (this.#hash ??= contentHash(this.json));
  }

  get version(): string {
    const { changedAt: updatedAt, observedAt, hash } = this;
    return versionOf({ updatedAt, within: this.#within, observedAt, rank: this.#rank, hash });
  }

  replaceContent(json: string, columns: GroupState["columns"]): void {
    this.json = json;
    this.columns = columns;
    this.#hash = null;
  }
}
