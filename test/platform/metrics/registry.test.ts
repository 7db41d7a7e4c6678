import { expect, test } from "vitest";
import { createLog } from "../../../src/platform/log.ts";
import { type Metric, type Sample, createMetrics } from "../../../src/platform/metrics/registry.ts";

const log = createLog({ level: "silent", name: "test", destination: process.stderr });
const gauge: Metric = { name: "ours", type: "gauge", unit: null, help: "Of ours.", labels: {} };
const byState: Metric = { ...gauge, name: "ours_by_state", labels: { state: ["a", "b"] } };
const total: Metric = { ...gauge, name: "ours_total", type: "counter" };

/** The samples of our own metrics, as a scrape has them. */
const scraped = async (metrics: ReturnType<typeof createMetrics>): Promise<string[]> =>
  (await metrics.text()).split("\n").filter((line) => line.startsWith("ours"));

test("shows what each scrape reads, and nothing of the one before", async () => {
  const metrics = createMetrics({ log });
  let samples: Sample[] = [{ labels: { state: "a" }, value: 2 }];
  metrics.read(byState, () => samples);
  metrics.read(total, () => [{ value: 5 }]);
  const first = ['ours_by_state{state="a"} 2', "ours_total 5"];
  expect(await scraped(metrics)).toEqual(first);
  expect(await scraped(metrics)).toEqual(first);
  samples = [{ labels: { state: "b" }, value: 1 }];
  expect(await scraped(metrics)).toEqual(['ours_by_state{state="b"} 1', "ours_total 5"]);
});

test("shows scrapers that ask at once the same, however long the reading takes", async () => {
  const metrics = createMetrics({ log });
  const readings: ((samples: Sample[]) => void)[] = [];
  metrics.read(byState, () => new Promise((resolve) => void readings.push(resolve)));
  metrics.read(total, () => [{ value: 5 }]);
  const scrapes = [scraped(metrics), scraped(metrics), scraped(metrics)];
  for (const answer of readings) answer([{ labels: { state: "a" }, value: 2 }]);
  const same = ['ours_by_state{state="a"} 2', "ours_total 5"];
  expect(await Promise.all(scrapes)).toEqual([same, same, same]);
});

test("leaves out what cannot be read, or has no samples, and shows all else", async () => {
  const metrics = createMetrics({ log });
  let isThere = true;
  metrics.read(gauge, () => (isThere ? [{ value: 1 }] : []));
  metrics.read(byState, async () => Promise.reject(new Error("away")));
  metrics.read(total, () => [{ value: 5 }]);
  expect(await scraped(metrics)).toEqual(["ours 1", "ours_total 5"]);
  isThere = false;
  expect(await scraped(metrics)).toEqual(["ours_total 5"]);
});

test("counts what is observed into the buckets of its labels", async () => {
  const metrics = createMetrics({ log });
  const { observe } = metrics.histogram({
    ...byState,
    name: "ours_seconds",
    type: "histogram",
    buckets: [0.1, 1],
  });
  observe(0.05, "a");
  observe(0.5, "a");
  observe(50, "b");
  expect((await scraped(metrics)).filter((line) => line.includes('state="a"'))).toEqual([
    'ours_seconds_bucket{le="0.1",state="a"} 1',
    'ours_seconds_bucket{le="1",state="a"} 2',
    'ours_seconds_bucket{le="+Inf",state="a"} 2',
    'ours_seconds_sum{state="a"} 0.55',
    'ours_seconds_count{state="a"} 2',
  ]);
});

test("two processes' metrics in one process know nothing of each other", async () => {
  const [one, other] = [createMetrics({ log }), createMetrics({ log })];
  one.read(gauge, () => [{ value: 1 }]);
  other.read(gauge, () => [{ value: 2 }]);
  expect([await scraped(one), await scraped(other)]).toEqual([["ours 1"], ["ours 2"]]);
});
