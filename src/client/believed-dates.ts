import type { Clock } from "../platform/clock.ts";
import { getAccount } from "../contract/resources/account.ts";
import type { ServiceClient } from "./service-client.ts";

type Reader = Pick<ServiceClient, "get" | "listPages">;

/** Clocks differ by less; a `Date` of later is a fault of one answer, or of a service whose clock was moved. */
const farAheadMs = 3_600_000;
/** Two answers, one after the other, are not further apart. */
const sameClockMs = 60_000;

/** By how much a client's service is known to be ahead of this machine, as a sandbox whose clock was moved is. */
const leads = new WeakMap<object, number>();

/**
 * The `Date` of an answer, unless it lies far ahead and the next answer, of another object, does not: then this
 * machine's time stands for it. One answer of a wrong time would date what it shows years ahead, and nothing that comes
 * in those years would be newer. Asks the service only where a `Date` is far ahead of the last one that was believed.
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
  const isConfirmed = again !== null && Math.abs(again.getTime() - date.getTime()) < sameClockMs;
  if (!isConfirmed) return new Date(expected);
  leads.set(client, date.getTime() - clock.now().getTime());
  return date;
}

/** A reader whose answers bear dates that can be believed. */
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
