import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { delaysMs } from "./apply-latency.ts";
import type { Benchmark, BenchOptions, BenchResult, Target } from "./benchmark.ts";
import { meterSeconds } from "./support/cpu-meter.ts";
import { fillInbox } from "./support/fill-inbox.ts";
import { describeMicros } from "./support/format.ts";
import { handlersFolder } from "./support/handlers-folder.ts";
import { newStream } from "./support/load-generator.ts";
import { placement } from "./support/pinning.ts";
import type { DataPlace, Stand } from "./support/stand.ts";
import { median, spreadOf } from "./support/statistics.ts";
import { untilApplied, withSystem } from "./support/system.ts";
import { startWorker } from "./support/tallyhook.ts";
import { buildWithoutFeed } from "./support/without-feed.ts";

const perSecond = 100;
/** Kinds of change in the plain mix, about one change an event. */
const kinds = `["order.created", "order.paid", "customer.created", "subscription.created"]`;

/**
 * The merchant's own code on changes, in the real `tallyhook worker`, wherever that runs it. The queue is on
 * PostgreSQL: neither feed nor handlers use it. Four parts:
 *
 * - The feed's cost for applying: CPU an event of worker and PostgreSQL, while a worker drains a full inbox, compared
 *   with a build without the feed (support/without-feed.ts), in turns. CPU and not time, since other programs disturb
 *   it less.
 * - From the commit of a change to the start of `run`, at an even load. The server records the time of each commit
 *   (`track_commit_timestamp`), the handler notes when it begins: one machine's clock. One flush is not counted, as in
 *   apply-latency.
 * - Runs a second of empty handlers, over a backlog, from the first run that is marked done.
 * - From the 2xx to the applied row, while a handler hangs, holds every connection that it can get, or burns CPU
 *   without a pause, compared with no handler.
 */
export const handlers: Benchmark = {
  name: "handlers",
  title: "The feed and the merchant's own code: cost, delay, rate, and what a bad handler does to rows",
  async run(stand, options, say) {
    const parts = [feedCost, startDelay, drainRate, rowDelay];
    const results: BenchResult[] = [];
    for (const part of parts) results.push(await part(stand, options, say));
    return {
      rows: results.flatMap(({ rows }) => rows),
      targets: results.flatMap(({ targets }) => targets),
      notes: ["CPU of the machine's other programs is not counted, but slows all that is timed"],
    };
  },
};

type Say = (line: string) => void;
type Part = (stand: Stand, options: BenchOptions, say: Say) => Promise<BenchResult>;

const row = (part: string, variant: string, measured: string, cpu = "") => ({
  part,
  variant,
  measured,
  "CPU µs": cpu,
});

const mostFeedCost = 1.1;

const feedCost: Part = async (stand, options, say) => {
  const builds = { "with the feed": undefined, "without it": await buildWithoutFeed() };
  const names = Object.keys(builds) as (keyof typeof builds)[];
  const measured = new Map<string, Record<string, number>[]>(names.map((name) => [name, []]));
  for (let round = 1; round <= options.rounds; round++) {
    // The first of a round has the colder caches.
    for (const name of round % 2 === 0 ? names.toReversed() : names) {
      const micros = await stand.withDatabase("postgres", placement.all, (place) =>
        applyCost(stand, place, options, builds[name]),
      );
      measured.get(name)?.push(micros);
      say(`round ${round}: applying ${name}: ${describeMicros(micros)} µs an event`);
    }
  }
  const total = (micros: Record<string, number>) => Object.values(micros).reduce((sum, each) => sum + each, 0);
  const [withFeed = [], without = []] = names.map((name) => measured.get(name));
  const ratio = median(withFeed.map((micros, n) => total(micros) / total(without[n] ?? micros)));
  return {
    rows: names.map((name) => {
      const rounds = measured.get(name) ?? [];
      const cheapest = rounds.toSorted((a, b) => total(a) - total(b))[0] ?? {};
      return row("applying", name, `${Math.round(median(rounds.map(total)))} µs an event`, describeMicros(cheapest));
    }),
    targets: [
      {
        what: "CPU of applying an event, with the feed to without it",
        wanted: `≤ ${mostFeedCost.toFixed(2)}`,
        measured: ratio.toFixed(2),
        reached: ratio <= mostFeedCost,
      },
    ],
    notes: [],
  };
};

/** CPU µs an event, by program, of draining a full inbox. */
async function applyCost(
  { directory }: Stand,
  place: DataPlace,
  { seconds, profile }: BenchOptions,
  file?: string,
): Promise<Record<string, number>> {
  const events = Math.ceil(seconds * 8_000);
  await fillInbox(place.databaseUrl, newStream("plain"), events);
  return withClient(place, async (client) => {
    const name = file === undefined ? "feed" : "no-feed";
    const worker = await startWorker({ directory, cpus: placement.all, profile, name, file }, place);
    try {
      const before = await Promise.race([
        untilSome(client, "select count(*) as n from inbox.progress where state <> 'received'"),
        worker.died,
      ]);
      const stopMeter = meterSeconds({ ...place.pids, worker: worker.pid });
      await Promise.race([untilApplied(client), worker.died]);
      return perUnit(stopMeter(), events - before);
    } finally {
      await worker.stop();
    }
  });
}

const wantedStartMs = 300;

const startDelay: Part = async (stand, options, say) => {
  const folder = join(stand.directory, "handlers-noting");
  const notes = join(folder, "starts.txt");
  const workerEnv = await handlersFolder(folder, {
    noting: `on: ${kinds},
      run({ change }) {
        appendFileSync(${JSON.stringify(notes)}, \`\${change.seq} \${performance.timeOrigin + performance.now()}\\n\`);
      }`,
  });
  const { delays, changesPerSecond } = await withSystem(
    stand,
    "postgres",
    { profile: options.profile, workerEnv },
    async ({ generator, port, client }) => {
      const open = (seconds: number) =>
        generator.run({ port, plan: { kind: "open", seconds, perSecond, reportAcks: false } });
      await untilSome(client, knownHandlers);
      await open(Math.min(2, options.seconds));
      await untilHandled(client);
      const all: number[] = [];
      for (let round = 1; round <= options.rounds; round++) {
        await rm(notes, { force: true });
        await open(options.seconds);
        await untilApplied(client);
        await untilHandled(client);
        const delays = await startDelays(client, notes);
        const { p50, p99 } = spreadOf(delays);
        say(`round ${round}: from the change to its handler: p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms`);
        all.push(...delays);
      }
      return { delays: all, changesPerSecond: all.length / (options.rounds * options.seconds) };
    },
  );
  const { p50, p99, max } = spreadOf(delays);
  const rate = `${Math.round(changesPerSecond)} changes/s`;
  return {
    rows: [row("start of run", rate, `p50 ${p50.toFixed(0)}, p99 ${p99.toFixed(0)}, max ${max.toFixed(0)} ms`)],
    targets: [
      {
        what: `p99 from the commit of a change to its handler, at ${rate}`,
        wanted: `< ${wantedStartMs} ms`,
        measured: `${p99.toFixed(0)} ms`,
        reached: p99 < wantedStartMs,
      },
    ],
    notes: [],
  };
};

/** For each change that was handled since the notes began. */
async function startDelays(client: pg.Client, file: string): Promise<number[]> {
  const started = (await readFile(file, "utf8"))
    .trim()
    .split("\n")
    .map((line) => line.split(" ").map(Number) as [number, number]);
  const { rows } = await client.query<{ seq: string; at_ms: number }>(
    `select seq, (extract(epoch from pg_xact_commit_timestamp(xmin)) * 1000)::float8 as at_ms
     from feed.changes where seq = any($1::bigint[])`,
    [started.map(([seq]) => seq)],
  );
  const committedMs = new Map(rows.map((each) => [Number(each.seq), each.at_ms]));
  return started.map(([seq, atMs]) => atMs - (committedMs.get(seq) ?? Number.NaN));
}

const wantedRunsPerSecond = 2_000;

const drainRate: Part = async (stand, options, say) => {
  const nothing = `on: ${kinds}, from: "beginning", run() {}`;
  const variants: Record<string, { files: Record<string, string>; eventsPerSecond: number }> = {
    "one handler, 100 at a time": {
      files: { one: `${nothing}, concurrency: 100` },
      eventsPerSecond: 10_000,
    },
    "four handlers, 25 at a time": {
      files: Object.fromEntries(["a", "b", "c", "d"].map((name) => [name, `${nothing}, concurrency: 25`])),
      eventsPerSecond: 3_000,
    },
    // A transaction, and a flush of the log, for each.
    "one transactional, 16 at a time": {
      files: { exact: `${nothing}, concurrency: 16, transactional: true` },
      eventsPerSecond: 800,
    },
  };
  const rows: BenchResult["rows"] = [];
  const targets: Target[] = [];
  for (const [what, { files, eventsPerSecond }] of Object.entries(variants)) {
    const env = await handlersFolder(join(stand.directory, `handlers-${rows.length}`), files);
    const rounds = [];
    for (let round = 1; round <= options.rounds; round++) {
      const result = await stand.withDatabase("postgres", placement.all, (place) =>
        oneDrain(stand, place, options, {
          name: `handlers-${rows.length}`,
          env,
          events: Math.ceil(options.seconds * eventsPerSecond),
        }),
      );
      say(`round ${round}: ${what}: ${Math.round(result.perSecond)} runs/s, ${describeMicros(result.micros)} µs a run`);
      rounds.push(result);
    }
    const perSecond = median(rounds.map((each) => each.perSecond));
    const last = rounds.at(-1)?.micros ?? {};
    rows.push(row("runs", what, `${Math.round(perSecond)} a second`, describeMicros(last)));
    if (rows.length > 1) continue;
    targets.push({
      what: `trivial runs a second, ${what}`,
      wanted: `≥ ${wantedRunsPerSecond.toLocaleString("en")}/s`,
      measured: `${Math.round(perSecond)}/s`,
      reached: perSecond >= wantedRunsPerSecond,
    });
  }
  return { rows, targets, notes: [] };
};

/** Applies events without handlers, then handles all changes in another worker. */
async function oneDrain(
  { directory }: Stand,
  place: DataPlace,
  { profile }: BenchOptions,
  { name, env, events }: { name: string; env: Readonly<Record<string, string>>; events: number },
): Promise<{ perSecond: number; micros: Record<string, number> }> {
  await fillInbox(place.databaseUrl, newStream("plain"), events);
  const placed = { directory, cpus: placement.all, profile };
  return withClient(place, async (client) => {
    const applier = await startWorker({ ...placed, name: `${name}-applying` }, place);
    try {
      await Promise.race([untilApplied(client), applier.died]);
    } finally {
      await applier.stop();
    }
    const done = "select coalesce(sum(done), 0) as n from dispatch.counts";
    const worker = await startWorker({ ...placed, name }, place, env);
    try {
      const before = await Promise.race([untilSome(client, done), worker.died]);
      const [stopMeter, startMs] = [meterSeconds({ ...place.pids, worker: worker.pid }), performance.now()];
      await Promise.race([untilHandled(client), worker.died]);
      const [spent, tookMs] = [stopMeter(), performance.now() - startMs];
      const runs = (await readCount(client, done)) - before;
      return { perSecond: (runs * 1_000) / tookMs, micros: perUnit(spent, runs) };
    } finally {
      await worker.stop();
    }
  });
}

const badHandlers: Readonly<Record<string, string>> = {
  "no handler": "",
  "a handler that hangs": `on: ${kinds}, concurrency: 100, deadlineMs: 900_000, run: () => new Promise(() => {})`,
  "one that holds all connections": `on: ${kinds}, concurrency: 100, transactional: true,
    run: ({ db }) => db.raw("select pg_sleep(600)")`,
  "one that burns CPU": `on: ${kinds}, concurrency: 1,
    run() { for (const end = performance.now() + 20; performance.now() < end; ) ; }`,
};

const mostRowRatio = 1.25;

const rowDelay: Part = async (stand, options, say) => {
  const p99s = new Map<string, number>();
  const rows = [];
  for (const [what, fields] of Object.entries(badHandlers)) {
    const folder = join(stand.directory, `handlers-bad-${rows.length}`);
    const workerEnv = fields === "" ? {} : await handlersFolder(folder, { bad: fields });
    const spreads = await withSystem(
      stand,
      "postgres",
      { profile: options.profile, workerEnv },
      async ({ generator, port, client }) => {
        const open = (seconds: number) =>
          generator.run({ port, plan: { kind: "open", seconds, perSecond, reportAcks: true } });
        if (fields !== "") await untilSome(client, knownHandlers);
        await open(Math.min(2, options.seconds));
        const measured = [];
        for (let round = 1; round <= options.rounds; round++) {
          const report = await open(options.seconds);
          await untilApplied(client);
          const spread = spreadOf(await delaysMs(client, report));
          say(`round ${round}: ${what}: p99 of the row ${spread.p99.toFixed(1)} ms`);
          measured.push(spread);
        }
        return measured;
      },
    );
    const p99 = median(spreads.map((each) => each.p99));
    const p50 = median(spreads.map((each) => each.p50));
    p99s.set(what, p99);
    rows.push(row("row", what, `p50 ${p50.toFixed(1)}, p99 ${p99.toFixed(1)} ms`));
  }
  const [none = Number.NaN, ...others] = p99s.values();
  return {
    rows,
    targets: others.map((p99, n) => ({
      what: `p99 from the 2xx to the row at ${perSecond} events/s, ${[...p99s.keys()][n + 1]}, to no handler`,
      wanted: `≤ ${mostRowRatio.toFixed(2)}`,
      measured: (p99 / none).toFixed(2),
      reached: p99 / none <= mostRowRatio,
    })),
    notes: [],
  };
};

const perUnit = (seconds: Record<string, number>, units: number): Record<string, number> =>
  Object.fromEntries(Object.entries(seconds).map(([name, each]) => [name, (each * 1e6) / Math.max(1, units)]));

async function withClient<T>({ databaseUrl }: DataPlace, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

const pollMs = 20;

const readCount = async (client: pg.Client, sql: string): Promise<number> =>
  Number((await client.query<{ n: string }>(sql)).rows[0]?.n);

/** A handler begins with what comes after it was made known. */
const knownHandlers = "select count(*) as n from dispatch.handlers";

/** Waits until a count is above zero, and returns it. */
async function untilSome(client: pg.Client, sql: string): Promise<number> {
  for (;;) {
    const count = await readCount(client, sql);
    if (count > 0) return count;
    await sleep(pollMs);
  }
}

/** Waits until every handler has seen all changes. Throws if one has failed: the result would be meaningless. */
async function untilHandled(client: pg.Client): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ open: boolean; failed: boolean }>(
      `select exists (select from dispatch.runs)
                or exists (select from dispatch.handlers where position < feed.readable_until()) as open,
              exists (select from dispatch.counts where failed > 0) as failed`,
    );
    const [found] = rows;
    if (found?.failed === true) throw new Error("a handler has failed");
    if (found?.open === false) return;
    await sleep(pollMs);
  }
}
