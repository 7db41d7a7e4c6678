import type { JsonObject } from "./canonical.ts";

export const resources = ["order", "transaction", "subscription", "customer"] as const;
export type Resource = (typeof resources)[number];

/** One state of one object, as an event, a read, an import or a repair shows it. */
export interface Observation {
  resource: Resource;
  object: Readonly<Record<string, unknown>>;
  /** The object's state as of this time if it has no `updated_at` of its own: the event's `created_at`. */
  fallbackUpdatedAt: string | null;
  /** The service's `Date` of the answer, fixed form; null for an event. */
  observedAt: string | null;
  /** `event:<seq>`, `fetch`, `import` or `reconcile:<run>`. */
  cause: string;
}

export type Column = string | number | boolean | null | JsonObject | JsonObject[];

/** The state of one group of fields: the unit that wins or loses as a whole. */
export interface GroupState {
  /** `order`, `order.dunning`, `transaction.inline`, …: also the name under which history keeps it. */
  group: string;
  id: string;
  version: string;
  updatedAt: string;
  observedAt: string | null;
  hash: string;
  /** Canonical content, the history's `data`. */
  content: JsonObject;
  /** The columns of the mirror's row that this group owns. */
  columns: Readonly<Record<string, Column>>;
  cause: string;
}

export type Decoded =
  | { ok: true; id: string; states: GroupState[] }
  /** Something happened to the object, but its state is not all there: it must be read. */
  | { ok: false; thin: true; id: string }
  /** Its id, its version or its money cannot be read. */
  | { ok: false; thin: false; reason: string };
