export const resources = ["order", "transaction", "subscription", "customer"] as const;
export type Resource = (typeof resources)[number];

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
