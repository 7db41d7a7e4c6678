import { setTimeout as sleep } from "node:timers/promises";
import { seededRandom } from "../../../src/platform/random.ts";
import { type Audit, audit } from "../../e2e/audit.ts";
import { layOutDeployment, webhookSecret } from "../../e2e/deployment.ts";
import { createHistory } from "../../e2e/history.ts";
import { longestWaitMs, storedAreSettled } from "../../e2e/inbox-progress.ts";
import type { Program } from "../../e2e/program.ts";
import { type SenderCounts, startSender } from "../../e2e/sender.ts";
import { createTestDatabase } from "../../support/database.ts";
import { eventually } from "../../support/eventually.ts";
import type { RedisServer } from "../../support/redis.ts";
import type { ManyRedis, Watched } from "../../support/redis-many.ts";

export interface FailoverPlan {
  /** Decides the events and the moments of the failovers. */
  seed: string;
  redis: ManyRedis;
  eventsPerSecond: number;
  /** In their order, each under load and with Redis in order before it. */
  failovers: readonly Failover[];
}

export interface Failover {
  name: string;
  /** Returns when another server has the queue. */
  strike(): Promise<void>;
  /** Brings back what was struck. */
  restore(): Promise<void>;
}

/** kill -9 of the server that has the queue. */
export function killed(redis: ManyRedis): Failover {
  let victim: RedisServer;
  return {
    name: "killed",
    async strike() {
      victim = await redis.queueOwner();
      await victim.kill9();
      await redis.isTakenOver(victim);
    },
    restore: () => victim.restart(),
  };
}

/** SIGSTOP of the server that has the queue: its connections stay open, and nobody is told. Later it goes on. */
export function stopped(redis: ManyRedis): Failover {
  let victim: RedisServer;
  return {
    name: "stopped",
    async strike() {
      victim = await redis.queueOwner();
      victim.pause();
      await redis.isTakenOver(victim);
    },
    restore: async () => victim.resume(),
  };
}

/** The master is changed on command, and both live. */
export const changed = (redis: Watched): Failover => ({
  name: "SENTINEL FAILOVER",
  strike: () => redis.failOver(),
  restore: async () => {},
});

export interface FailoverReport extends SenderCounts {
  failovers: {
    name: string;
    /** From its begin until `/readyz` said degraded. Null: it never did before wake-ups flowed again. */
    degradedAfterMs: number | null;
    /** From its begin until another server had the queue. */
    takenOverAfterMs: number;
    /** From its begin until wake-ups were added and taken there. */
    wakeUpsAfterMs: number;
    /** From its begin until every worker waited there for jobs of both queues, and `/readyz` said ok. */
    wholeAfterMs: number;
  }[];
  /** From the last acknowledgement until every event was settled. */
  drainMs: number;
  /** The longest that an event waited between its arrival and its end. */
  longestWaitMs: number;
  audit: Audit;
}

const workers = 2;

/**
 * A real receiver and workers under load, whose Redis fails over. Rejects when a process ends by itself, or when wake-ups
 * do not come back; otherwise says what it found.
 */
export async function runFailovers(plan: FailoverPlan): Promise<FailoverReport> {
  const random = seededRandom(`${plan.seed} moments`);
  const history = createHistory(seededRandom(`${plan.seed} history`));
  const database = await createTestDatabase();
  const deployment = await layOutDeployment({
    databaseUrl: database.url,
    redisUrl: plan.redis.url,
  });
  const programs: Program[] = await Promise.all([
    deployment.startReceiver(),
    ...Array.from({ length: workers }, () => deployment.startWorker()),
  ]);
  const sender = startSender(
    { history, random: seededRandom(`${plan.seed} sender`) },
    {
      url: deployment.webhooksUrl,
      secret: webhookSecret,
      eventsPerSecond: plan.eventsPerSecond,
    },
  );
  const status = async (): Promise<string> => {
    const answer = await fetch(deployment.readyUrl);
    if (answer.status !== 200) throw new Error(`/readyz answered ${answer.status}`);
    return ((await answer.json()) as { status: string }).status;
  };
  const isWhole = async (): Promise<boolean> => {
    const { consumers } = await plan.redis.queueTraffic();
    if (consumers < workers) throw new Error(`${consumers} wait for jobs`);
    return (await status()) === "ok";
  };
  const untilWhole = () =>
    eventually("every worker waits for jobs, and /readyz says ok", isWhole, { withinMs: 120_000 });
  const assertRunning = (): void => {
    for (const program of programs) {
      if (!program.isRunning()) throw new Error(`${program.name} ended by itself`);
      if (/Unhandled|uncaught/i.test(program.output())) throw new Error("an error was not handled");
    }
  };
  const failovers: FailoverReport["failovers"] = [];
  try {
    for (const { name, strike, restore } of plan.failovers) {
      await untilWhole();
      await sender.whenAcknowledged(plan.eventsPerSecond);
      await sleep(random() * 1_000);
      const startedMs = performance.now();
      const since = () => Math.round(performance.now() - startedMs);
      let degradedAfterMs: number | null = null;
      let isOver = false;
      const watching = (async () => {
        while (!isOver && degradedAfterMs === null) {
          if ((await status()) === "degraded") degradedAfterMs = since();
          await sleep(50);
        }
      })();
      await strike();
      const takenOverAfterMs = since();
      await untilWakeUpsFlow(plan.redis);
      const wakeUpsAfterMs = since();
      isOver = true;
      await watching;
      await restore();
      await untilWhole();
      failovers.push({
        name,
        degradedAfterMs,
        takenOverAfterMs,
        wakeUpsAfterMs,
        wholeAfterMs: since(),
      });
      assertRunning();
    }
    await sender.whenAcknowledged(plan.eventsPerSecond);
    await sender.finish();
    const drainMs = await storedAreSettled(database.db);
    assertRunning();
    return {
      failovers,
      ...sender.counts,
      slowestAnswerMs: Math.round(sender.counts.slowestAnswerMs),
      drainMs,
      longestWaitMs: await longestWaitMs(database.db),
      audit: await audit(database.db, sender.acknowledged, history.model),
    };
  } catch (cause) {
    const words = programs.map(({ name, output }) => `${name}: ${output().slice(-3_000)}`);
    throw new Error(`the run with seed ${plan.seed} broke off\n${words.join("\n")}`, { cause });
  } finally {
    await sender.abort();
    await Promise.all(programs.map((program) => program.kill()));
    await database.destroy();
  }
}

/** The receiver adds wake-ups to the server that has the queue now, and a worker takes them. */
async function untilWakeUpsFlow(redis: ManyRedis): Promise<void> {
  const begun = await eventually("a server has the queue", () => redis.queueTraffic());
  await eventually("wake-ups are added and taken", async () => {
    const { added, waiting } = await redis.queueTraffic();
    return added > begun.added && waiting === 0;
  });
}
