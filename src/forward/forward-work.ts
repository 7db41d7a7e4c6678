import type { Knex } from "knex";
import { idempotencyKeyOf } from "../dispatch/attempt.ts";
import { changeOf, feedSource } from "../dispatch/feed-source.ts";
import { type HandledObject, readObjects } from "../dispatch/read-objects.ts";
import { AttemptFailed, type Source, type Work } from "../dispatch/recipient.ts";
import type { ClaimedRun } from "../dispatch/runs.ts";
import { type Change, changeJson } from "../feed/changes.ts";
import type { Delivery, Destination } from "./destination.ts";
import type { DestinationSettings } from "./settings.ts";

/** Destinations are sent what is new in their source. */
export const forwardWork = ({ db }: { db: Knex }): Work<Destination> => ({
  sourceOf,
  async prepare(claimed) {
    const deliveries = await readDeliveries(
      db,
      claimed.map(({ recipient, run }) => ({ ...recipient, run })),
    );
    return claimed.map(({ recipient }, n) => ({
      removesRun: false,
      async make() {
        const delivery = deliveries[n] ?? new AttemptFailed("nothing is known of it");
        if (delivery instanceof AttemptFailed) throw delivery;
        await recipient.deliver(delivery);
      },
    }));
  },
});

function sourceOf({ name, settings }: Pick<Destination, "name" | "settings">): Source {
  const { kinds = null, includeImport } = settings;
  return feedSource({ name, kinds, includeImport });
}

/** What is sent to destinations for runs, or why it cannot be sent, in the order of the runs. */
export async function readDeliveries(
  db: Knex,
  wanted: readonly {
    name: string;
    settings: DestinationSettings;
    run: Pick<ClaimedRun, "seq" | "item">;
  }[],
): Promise<(Delivery | AttemptFailed)[]> {
  const changes = wanted.map(({ run }) => changeOf(run));
  const objects = await readObjects(db, changes);
  return wanted.map(({ name, settings: { withObject } }, n) => {
    const [change, object = null] = [changes[n], objects[n]];
    if (change === undefined) throw new TypeError("a run has no change");
    if (withObject && object === null) return notSeen(change);
    const body = changeBody(change, withObject ? object : null);
    return {
      id: idempotencyKeyOf(name, change),
      body: Buffer.from(JSON.stringify(body)),
      headers: {},
    };
  });
}

const notSeen = ({ resource, id }: Change): AttemptFailed =>
  new AttemptFailed(
    `the mirror has not seen the ${resource} ${id} yet; it is being read from the service`,
  );

/** The form of a change that is sent (docs/forwarding.md). Pure. */
const changeBody = (change: Change, object: HandledObject | null): object => ({
  type: change.kind,
  timestamp: change.recordedAt,
  data: { change: changeJson(change), ...(object === null ? {} : { object }) },
});
