import type { Knex } from "knex";
import { idempotencyKeyOf } from "../dispatch/attempt.ts";
import { type HandledObject, changeOf, eventSeqOf, feedSource, readObjects } from "../dispatch/feed-source.ts";
import { AttemptFailed, type Source, type Work } from "../dispatch/recipient.ts";
import type { ClaimedRun } from "../dispatch/runs.ts";
import { type Change, changeJson } from "../../../core/mirror/changes/read-changes.ts";
import { readBytes } from "../../../core/inbox/read-by-number.ts";
import type { Delivery, Destination } from "./destination.ts";
import type { DestinationSettings } from "./settings.ts";
import { webhookDelivery, webhookSource } from "./webhooks.ts";

/** Sends destinations the new rows of their sources. */
export const forwardWork = ({ db }: { db: Knex }): Work<Destination> => ({
  sourceOf,
  async prepare(claimed) {
    const deliveries = await readDeliveries(
      db,
      claimed.map(({ recipient: { name, settings }, run }) => ({ name, settings, run })),
    );
    return claimed.map(({ recipient, run }, n) => ({
      removesRun: false,
      eventSeq: recipient.settings.send === "webhooks" ? run.seq : eventSeqOf(run),
      async make() {
        const delivery = deliveries[n] ?? new AttemptFailed("nothing is known of it");
        if (delivery instanceof AttemptFailed) throw delivery;
        await recipient.deliver(delivery);
      },
    }));
  },
});

function sourceOf({ name, settings }: Pick<Destination, "name" | "settings">): Source {
  if (settings.send === "webhooks") return webhookSource(settings.types ?? null);
  const { kinds = null, includeImport } = settings;
  return feedSource({ name, kinds, includeImport });
}

interface Wanted {
  name: string;
  settings: DestinationSettings;
  run: Pick<ClaimedRun, "seq" | "item">;
}

/**
 * The requests to destinations for runs, or why one cannot be sent, in the order of the runs. A few statements for any
 * number of runs.
 */
export async function readDeliveries(db: Knex, wanted: readonly Wanted[]): Promise<(Delivery | AttemptFailed)[]> {
  const found = new Map<Wanted, Delivery | AttemptFailed>([
    ...(await readWebhooks(
      db,
      wanted.filter(({ settings }) => settings.send === "webhooks"),
    )),
    ...(await readChangesOf(db, wanted)),
  ]);
  return wanted.map((each) => found.get(each) ?? new AttemptFailed("nothing is known of it"));
}

async function readChangesOf(db: Knex, wanted: readonly Wanted[]): Promise<[Wanted, Delivery | AttemptFailed][]> {
  const own = wanted.flatMap((each) =>
    each.settings.send === "changes"
      ? [{ each, change: changeOf(each.run), withObject: each.settings.withObject }]
      : [],
  );
  if (own.length === 0) return [];
  const objects = await readObjects(
    db,
    own.map(({ change }) => change),
  );
  return own.map(({ each, change, withObject }, n) => {
    const object = objects[n] ?? null;
    if (withObject && object === null) return [each, notSeen(change)];
    const body = changeBody(change, withObject ? object : null);
    const id = idempotencyKeyOf(each.name, change);
    return [each, { id, body: Buffer.from(JSON.stringify(body)), headers: {} }];
  });
}

async function readWebhooks(db: Knex, wanted: readonly Wanted[]): Promise<[Wanted, Delivery | AttemptFailed][]> {
  if (wanted.length === 0) return [];
  const bytes = await readBytes(
    db,
    wanted.map(({ run }) => run.seq),
  );
  return wanted.map((each) => {
    const body = bytes.get(each.run.seq) ?? null;
    return [each, body === null ? eventGone : webhookDelivery(each.run, body)];
  });
}

/** Trying again cannot bring them back. */
const eventGone = new AttemptFailed("the event's bytes are gone: pruned, dropped after EVENTS_KEEP_DAYS, or erased", {
  isFinal: true,
});

const notSeen = ({ resource, id }: Change): AttemptFailed =>
  new AttemptFailed(`the mirror has not seen the ${resource} ${id} yet; it is being read from the service`);

/** The form of a change that is sent (docs/forwarding.md). */
const changeBody = (change: Change, object: HandledObject | null): object => ({
  type: change.kind,
  timestamp: change.recordedAt,
  data: { change: changeJson(change), ...(object === null ? {} : { object }) },
});
