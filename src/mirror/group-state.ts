import { contentHash } from "./canonical.ts";
import type { Content } from "./canonical.ts";
import type {
  Column,
  GroupState,
  MaskedCardNumbers,
  ObjectKey,
  Observation,
} from "./observation.ts";
import { isPlausibleAt, versionOf } from "./version.ts";
import type { VersionParts } from "./version.ts";

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
