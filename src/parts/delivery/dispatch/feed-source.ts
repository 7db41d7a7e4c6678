import { type Change, positionAt, readChanges, readableUntil } from "../../../core/mirror/changes/read-changes.ts";
import { keepPosition } from "../consumers.ts";
import { consumerOf } from "./feed-place.ts";
import type { Source } from "./recipient.ts";
import type { ClaimedRun } from "./runs.ts";

export interface FeedSourceOptions {
  /** The recipient's name, under which the feed keeps its position. */
  name: string;
  /** Null: all. */
  kinds: readonly string[] | null;
  /** Whether imported changes are included. */
  includeImport: boolean;
}

/** Changes of the feed, of some kinds. */
export const feedSource = ({ name, kinds, includeImport }: FeedSourceOptions): Source => ({
  name: "changes",
  readableUntil,
  positionAt,
  async read(db, { after, limit, startsAt }) {
    const { changes, ...page } = await readChanges(db, {
      after,
      limit,
      ...(kinds === null ? {} : { kinds }),
    });
    const rows = changes
      .filter(({ cause }) => includeImport || cause !== "import")
      .filter(({ recordedAt }) => startsAt === null || recordedAt >= startsAt)
      .map((change) => {
        const { seq, resource, id, kind } = change;
        return { seq, resource, id, kind, item: change };
      });
    return { rows, ...page };
  },
  keepPosition: (trx, position) => keepPosition(trx, { name: consumerOf(name), position }),
});

type StoredChange = Omit<Change, "recordedAt" | "state"> & {
  recordedAt: string;
  state: { group: string; at: string; hash: string } | null;
};

/** The change of a run that was made from the feed. */
export function changeOf({ item }: Pick<ClaimedRun, "item">): Change {
  const { recordedAt, state, ...change } = item as StoredChange;
  return {
    ...change,
    recordedAt: new Date(recordedAt),
    state: state === null ? null : { ...state, at: new Date(state.at) },
  };
}

/** The event that caused the change of a run that was made from the feed; null where it was no event. */
export function eventSeqOf({ item }: Pick<ClaimedRun, "item">): number | null {
  const [, seq] = /^event:(\d{1,15})$/.exec((item as StoredChange).cause) ?? [];
  return seq === undefined ? null : Number(seq);
}
