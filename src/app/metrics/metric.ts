import type { Knex } from "knex";
import type { JobQueue } from "../../core/queue/job-queue.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Metric, Sample } from "../../platform/metrics/registry.ts";
import { currencyDigits } from "../../platform/money.ts";
import type { Config } from "../config/config.ts";

/** The processes that serve metrics. `start` serves what each of the others does. */
export const processNames = ["receiver", "worker", "dashboard", "handlers", "start"] as const;
export type ProcessName = (typeof processNames)[number];

/** A metric of this program, with what people ask about it. */
export interface CatalogueEntry extends Metric {
  /** In addition to `start`. */
  servedBy: readonly Exclude<ProcessName, "start">[];
  /** Alerts in deploy/prometheus/tallyhook.rules.yml that use it. */
  alerts: readonly string[];
}

/** Counting ends there, so that a scrape costs the same in a storm. */
export const countedTo = 10_000;
/** The most handlers, destinations, consumers and channels: the first by name. */
export const namesAtMost = 100;
/** ISO 4217, and `other` and `unknown`. */
export const currencies = { atMost: 200 };
export const names = { atMost: namesAtMost };

type Details<L> = Partial<Pick<CatalogueEntry, "servedBy" | "alerts" | "buckets">> & { labels?: L };

/** A metric of a worker, unless another process serves it. Its name has its type and its unit. */
export function metric<const L extends CatalogueEntry["labels"] = Record<never, never>>(
  name: string,
  help: string,
  { labels = {} as L, servedBy = ["worker"], alerts = [], buckets }: Details<L> = {},
): CatalogueEntry & { labels: L } {
  const plain = name.endsWith("_total") ? "counter" : "gauge";
  const unit = name.endsWith("_minor") ? "minor units" : null;
  return {
    name,
    type: buckets === undefined ? plain : "histogram",
    unit: name.endsWith("_seconds") ? "seconds" : unit,
    help,
    labels,
    servedBy,
    alerts,
    ...(buckets === undefined ? {} : { buckets }),
  };
}

/** What a reading may use. */
export interface ReadingTools {
  /** One connection, whose statements end after three seconds. */
  db: Knex;
  config: Config;
  clock: Clock;
  serviceClock: Clock;
  queue: JobQueue;
}

/** Metrics that one reading gives: one that fails takes no other with it. */
export interface MetricReading {
  /** As `tallyhook_database_read_success` calls it. */
  name: string;
  read(tools: ReadingTools): Promise<unknown>;
  gives: readonly { metric: CatalogueEntry; samples(found: unknown, tools: ReadingTools): readonly Sample[] }[];
}

type Gives<T> = readonly (readonly [CatalogueEntry, (found: T, tools: ReadingTools) => readonly Sample[]])[];

export const reading = <T>(
  name: string,
  read: (tools: ReadingTools) => Promise<T>,
  gives: Gives<T>,
): MetricReading => ({
  name,
  read,
  gives: gives.map(([metric, samples]) => ({ metric, samples: (found, tools) => samples(found as T, tools) })),
});

/** Nothing where it never happened: that is no age. */
export const ageOf = (since: Date | null, now: Date): Sample[] =>
  since === null ? [] : [{ value: ageSeconds(now, since) }];

/** 0 where there is nothing. A clock that is behind makes no age negative. */
export const ageSeconds = (now: Date, since: Date | null): number =>
  since === null ? 0 : Math.max(0, (now.getTime() - since.getTime()) / 1_000);

/** Limits the label to the codes of ISO 4217, for any currency name of the service. */
function knownCurrency(code: string | null): string {
  if (code === null) return "unknown";
  const lower = code.toLowerCase();
  return currencyDigits.has(lower) ? lower : "other";
}

/** Amounts in minor units, by the currency that their label names. */
export const byCurrency = (amounts: readonly (readonly [string | null, bigint])[]): readonly Sample[] =>
  sums(amounts.map(([code, amount]) => [{ currency: knownCurrency(code) }, Number(amount)]));

/** Adds up what has the same labels. */
export function sums(parts: readonly (readonly [Readonly<Record<string, string>>, number])[]): readonly Sample[] {
  const found = new Map<string, { labels: Readonly<Record<string, string>>; value: number }>();
  for (const [labels, value] of parts) {
    const key = JSON.stringify(labels);
    const known = found.get(key) ?? { labels, value: 0 };
    known.value += value;
    found.set(key, known);
  }
  return [...found.values()];
}

export const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1);
