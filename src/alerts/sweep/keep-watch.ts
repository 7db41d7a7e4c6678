import type { Knex } from "knex";
import { readMark, writeMark } from "../marks.ts";

/** Since when somebody watches, by this machine's clock. */
export interface Watch {
  /** Ever. */
  first: Date;
  /** Without a gap: nobody was there to beat, or to be heard, while no sweep ran. */
  since: Date;
}

interface Mark {
  first: string;
  since: string;
  seen: string;
}

/** Says that a sweep looks now, and since when sweeps have looked no more than `gapMinutes` apart. */
export async function keepWatch(
  trx: Knex.Transaction,
  now: Date,
  gapMinutes: number,
): Promise<Watch> {
  const last = await readMark<Mark>(trx, "watch");
  // A clock that was ahead and is set right leaves times of the future, by which nothing would be missed until then.
  const isGap =
    last === null || Math.abs(now.getTime() - Date.parse(last.seen)) > gapMinutes * 60_000;
  const first =
    last === null || Date.parse(last.first) > now.getTime() ? now : new Date(last.first);
  const since = isGap ? now : new Date(last.since);
  await writeMark(trx, "watch", { first, since, seen: now });
  return { first, since };
}
