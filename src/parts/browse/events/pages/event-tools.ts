import type { Answers, RaisedAlert } from "../../../../app/answers.ts";
import type { Knex } from "knex";
import type { EnvelopePaths } from "../../../../core/contract/event-envelope.ts";
import type { Change } from "../../../../core/mirror/changes/read-changes.ts";
import { noEvent } from "../acts.ts";
import { type StoredEvent, findEvents } from "../../../../core/inbox/queries.ts";
import type { PreviewResult } from "../../../../core/worker/preview-event.ts";
import { pageErrorOf } from "../../../../app/dashboard/act-route.ts";

/** The alerts that a replay would send. */
export interface ToldByPreview {
  changes: readonly Change[];
  /** Null: this deployment has no alerts. */
  alerts: readonly RaisedAlert[] | null;
}

export interface EventTools {
  places: Readonly<EnvelopePaths>;
  /** The alerts of an event from a transaction that began at a time; null: this deployment has no alerts. */
  alertsAt: NonNullable<Answers["alertsAt"]> | null;
  preview(db: Knex, seq: number): Promise<PreviewResult<ToldByPreview>>;
}

/** Throws `PageError` for a number that no event has. */
export async function requireEvent(db: Knex, seq: string): Promise<StoredEvent> {
  const found = /^\d{1,15}$/.test(seq) ? await findEvents(db, seq) : [];
  const event = found.find((each) => String(each.seq) === seq);
  if (event !== undefined) return event;
  throw pageErrorOf(noEvent(seq.slice(0, 40)));
}
