import type { Clock } from "../../platform/clock.ts";
import { getAccount } from "../contract/resources/account.ts";
import type { ServiceClient } from "./service-client.ts";

type Reader = Pick<ServiceClient, "get" | "listPages">;

/**
 * Clocks differ by less than this. A `Date` further ahead is a fault of one answer, or of a service whose clock was
 * moved.
 */
const farAheadMs = 3_600_000;
/** Two consecutive answers are never further apart than this. */
const sameClockMs = 60_000;

/** How far a client's service is known to be ahead of this machine, as a sandbox whose clock was moved is. */
const leads = new WeakMap<object, number>();

/**
 * The `Date` of an answer. Where it lies far ahead, the answer to another request must confirm it; if it does not, the
 * expected time is used instead. A single wrong `Date` would put the object's version years ahead, and no later update
 * would count as newer. Makes that other request only when a `Date` lies far ahead.
 */
export async function believedDate(
  { client, clock }: { client: Pick<ServiceClient, "get">; clock: Clock },
  date: Date,
): Promise<Date> {
  const lead = leads.get(client) ?? 0;
  const expected = clock.now().getTime() + lead;
  if (date.getTime() - expected <= farAheadMs) return date;
  const again = await client.get(getAccount, {}).then(
    (answer) => answer.date,
    () => null,
  );
  const isRecheck = again !== null && Math.abs(again.getTime() - date.getTime()) < sameClockMs;
  if (!isRecheck) return new Date(expected);
  leads.set(client, date.getTime() - clock.now().getTime());
  return date;
}

/** A reader whose answers carry believable dates. */
export function withBelievedDates(client: Reader, clock: Clock): Reader {
  const believed = (date: Date) => believedDate({ client, clock }, date);
  return {
    async get(endpoint, call, options) {
      const answer = await client.get(endpoint, call, options);
      return { ...answer, date: await believed(answer.date) };
    },
    async *listPages(endpoint, call, options) {
      for await (const page of client.listPages(endpoint, call, options)) {
        yield { ...page, date: await believed(page.date) };
      }
    },
  };
}
