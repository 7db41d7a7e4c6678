import { readFile } from "node:fs/promises";
import type { Knex } from "knex";
import { createDatabase } from "../../../src/platform/postgres/pool.ts";
import { type Random, seededRandom } from "../../../src/platform/random.ts";
import { type Audit, audit } from "../../e2e/audit.ts";
import { type Deployment, layOutDeployment, webhookSecret } from "../../e2e/deployment.ts";
import { createHistory } from "../../e2e/history.ts";
import { longestWaitMs, settledFromNow, storedAreSettled } from "../../e2e/inbox-progress.ts";
import type { Program } from "../../e2e/program.ts";
import { type Sender, type SenderCounts, startSender } from "../../e2e/sender.ts";
import type { DebianPostgres } from "../../support/debian-postgres.ts";
import { eventually } from "../../support/eventually.ts";

/** Of all events, so many are of one object. */
const hotRate = 0.2;

export interface ManyPlan {
  /** Decides the events, and which worker is struck. */
  seed: string;
  seconds: number;
  receivers: number;
  workers: number;
  /** Of all receivers together. */
  eventsPerSecond: number;
  postgres: DebianPostgres;
  /** By way of a pooler in transaction mode; null: directly. */
  pooledUrl: string | null;
  redisUrl: string | null;
  /** Whether a stopped worker goes on only when the server has ended the transaction that it held open: half a minute. */
  outlastsTransactions: boolean;
  /** What befalls the servers, in turn with what befalls the workers. */
  faults: Readonly<Record<string, (stage: Stage) => Promise<void>>>;
}

export interface Stage {
  /** Past the pooler. */
  db: Knex;
  counts(): SenderCounts;
  /** Resolves after so many more acknowledgements of each receiver. */
  whenAcknowledged(more: number): Promise<void>;
}

export interface ManyReport {
  audit: Audit;
  /** As PostgreSQL counts them. */
  deadlocks: number;
  /** What is in a log and should not be. */
  complaints: string[];
  numbers: SenderCounts & {
    /** How often each fault befell. */
    faults: Record<string, number>;
    drainMs: number;
    longestWaitMs: number;
  };
}

/**
 * Several receivers and workers, real processes, under load for a while, with a hot object among the events. Workers
 * are killed and stopped, servers struck. Rejects when a process ends by itself or something hangs; otherwise says what
 * it found.
 */
export async function runMany(plan: ManyPlan): Promise<ManyReport> {
  const random = seededRandom(`${plan.seed} faults`);
  const history = createHistory(seededRandom(`${plan.seed} history`), { hotRate });
  const { url } = plan.postgres;
  const db = createDatabase({ url, poolMax: 4, applicationName: "tallyhook test" });
  const programs: Program[] = [];
  const senders: Sender[] = [];
  const ended: Program[] = [];
  try {
    const deployments = await Promise.all(
      Array.from({ length: plan.receivers }, () =>
        layOutDeployment({
          databaseUrl: plan.pooledUrl ?? url,
          ...(plan.pooledUrl === null ? {} : { databaseDirectUrl: url }),
          ...(plan.redisUrl === null ? {} : { redisUrl: plan.redisUrl }),
        }),
      ),
    );
    const [deployment] = deployments;
    if (deployment === undefined) throw new Error("there is no deployment");
    programs.push(...(await Promise.all(deployments.map((each) => each.startReceiver()))));
    const team = await Promise.all(Array.from({ length: plan.workers }, () => deployment.startWorker()));
    for (const [n, { webhooksUrl }] of deployments.entries()) {
      const options = {
        url: webhooksUrl,
        secret: webhookSecret,
        eventsPerSecond: plan.eventsPerSecond / plan.receivers,
        connections: 12,
      };
      senders.push(startSender({ history, random: seededRandom(`${plan.seed} sender ${n}`) }, options));
    }
    const stage: Stage = {
      db,
      counts: () => sumOf(senders),
      whenAcknowledged: async (more) =>
        void (await Promise.all(senders.map((each) => each.whenAcknowledged(more, 120_000)))),
    };
    const faults: Record<string, (stage: Stage) => Promise<void>> = {
      "a worker is killed": () => killOne(team, ended, deployment, random),
      "a worker is stopped": () => stopOne(team, db, random, plan.outlastsTransactions),
      ...plan.faults,
    };
    const happened: Record<string, number> = {};
    const endMs = performance.now() + plan.seconds * 1_000;
    while (performance.now() < endMs) {
      for (const [name, befall] of Object.entries(faults)) {
        if (performance.now() > endMs && name in happened) break;
        await stage.whenAcknowledged(20 + Math.floor(random() * plan.eventsPerSecond * 0.2));
        await befall(stage);
        happened[name] = (happened[name] ?? 0) + 1;
        assertRunning([...programs, ...team]);
      }
    }
    await Promise.all(senders.map((sender) => sender.finish(120_000)));
    const drainMs = await storedAreSettled(db, 120_000);
    assertRunning([...programs, ...team]);
    programs.push(...team);
    const acknowledged = new Map(senders.flatMap((sender) => [...sender.acknowledged]));
    return {
      audit: await audit(db, acknowledged, history.model),
      deadlocks: await deadlocksOf(db),
      complaints: [
        ...complaintsIn("PostgreSQL", await readFile(plan.postgres.logFile, "utf8")),
        ...[...programs, ...ended].flatMap((each) => complaintsIn(each.name, each.output())),
      ],
      numbers: {
        faults: happened,
        ...sumOf(senders),
        drainMs,
        longestWaitMs: await longestWaitMs(db),
      },
    };
  } catch (cause) {
    const words = programs.map(({ name, output }) => `${name}: ${output().slice(-2_000)}`);
    throw new Error(`the run with seed ${plan.seed} broke off\n${words.join("\n")}`, { cause });
  } finally {
    await Promise.all(senders.map((sender) => sender.abort()));
    await db.destroy();
  }
}

function pick(team: readonly Program[], random: Random): { index: number; worker: Program } {
  const index = Math.floor(random() * team.length);
  const worker = team[index];
  if (worker === undefined) throw new Error("there is no worker");
  return { index, worker };
}

async function killOne(team: Program[], ended: Program[], deployment: Deployment, random: Random): Promise<void> {
  const { index, worker } = pick(team, random);
  await worker.kill();
  ended.push(worker);
  team[index] = await deployment.startWorker();
}

/**
 * SIGSTOP, and SIGCONT once the others have applied what arrived since. Where it holds a transaction open, nobody can have
 * its events until the server ends that.
 */
async function stopOne(
  team: readonly Program[],
  db: Knex,
  random: Random,
  outlastsTransactions: boolean,
): Promise<void> {
  const { worker } = pick(team, random);
  worker.signalGroup("SIGSTOP");
  try {
    await settledFromNow(db, { withinMs: 180_000, afterArrivalMs: 180_000 });
    if (!outlastsTransactions) return;
    // The server ends it after half a minute.
    await eventually("no transaction is left open", async () => {
      const { rows } = await db.raw<{ rows: unknown[] }>(
        `select from pg_stat_activity where application_name = 'tallyhook worker'
           and state like 'idle in transaction%' and state_change < now() - interval '2 seconds'`,
      );
      return rows.length === 0;
    });
  } finally {
    worker.signalGroup("SIGCONT");
  }
}

function assertRunning(programs: readonly Program[]): void {
  for (const program of programs) {
    if (!program.isRunning()) throw new Error(`${program.name} ended by itself`);
  }
}

function sumOf(senders: readonly Sender[]): SenderCounts {
  const sum = (of: (counts: SenderCounts) => number) => senders.reduce((total, { counts }) => total + of(counts), 0);
  return {
    acknowledged: sum((counts) => counts.acknowledged),
    committedUnanswered: sum((counts) => counts.committedUnanswered),
    repeats: sum((counts) => counts.repeats),
    refused503: sum((counts) => counts.refused503),
    brokenConnections: sum((counts) => counts.brokenConnections),
    slowestAnswerMs: Math.round(Math.max(...senders.map(({ counts }) => counts.slowestAnswerMs))),
  };
}

async function deadlocksOf(db: Knex): Promise<number> {
  const { rows } = await db.raw<{ rows: { deadlocks: string }[] }>(
    "select deadlocks from pg_stat_database where datname = current_database()",
  );
  return Number(rows[0]?.deadlocks);
}

/** A deadlock that a process repeated is in no count of its own, and one that the server broke is in its log. */
const complaintsIn = (name: string, log: string): string[] =>
  log
    .split("\n")
    .filter((line) => /40P01|deadlock detected|Unhandled|uncaught/i.test(line))
    .map((line) => `${name}: ${line.slice(0, 300)}`);
