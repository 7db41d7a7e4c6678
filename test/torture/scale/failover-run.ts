import { setTimeout as sleep } from "node:timers/promises";
import { seededRandom } from "../../../src/platform/random.ts";
import { type Audit, audit } from "../../e2e/audit.ts";
import { layOutDeployment, webhookSecret } from "../../e2e/deployment.ts";
import { createHistory } from "../../e2e/history.ts";
import { settledFromNow, storedAreSettled } from "../../e2e/inbox-progress.ts";
import type { Program } from "../../e2e/program.ts";
import { type SenderCounts, startSender } from "../../e2e/sender.ts";
import { createTestDatabase } from "../../support/database.ts";
import { eventually } from "../../support/eventually.ts";

export interface FailoverPlan {
  /** Decides the events and the moments of the failovers. */
  seed: string;
  redisUrl: string;
  eventsPerSecond: number;
  /** In their order, each under load and with Redis in order before it. */
  failovers: readonly { name: string; run(): Promise<void> }[];
}

export interface FailoverReport extends SenderCounts {
  failovers: {
    name: string;
    /** From its begin until `/readyz` said degraded. Null: it never did before wake-ups flowed again. */
    degradedAfterMs: number | null;
    /** From its begin until an event was applied within a second of its arrival: not by the relay. */
    wakeUpsAfterMs: number;
    /** From its begin until `/readyz` said ok for good. */
    readyAfterMs: number;
  }[];
  /** From the last acknowledgement until every event was settled. */
  drainMs: number;
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
    redisUrl: plan.redisUrl,
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
  const inOrder = async (): Promise<void> => {
    await eventually("/readyz says ok", async () => (await status()) === "ok");
    await settledFromNow(database.db, { withinMs: 60_000, afterArrivalMs: 1_000 });
  };
  const assertRunning = (): void => {
    for (const program of programs) {
      if (!program.isRunning()) throw new Error(`${program.name} ended by itself`);
      if (/Unhandled|uncaught/i.test(program.output())) throw new Error("an error was not handled");
    }
  };
  const failovers: FailoverReport["failovers"] = [];
  try {
    for (const { name, run } of plan.failovers) {
      await inOrder();
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
      await run();
      await settledFromNow(database.db, { withinMs: 60_000, afterArrivalMs: 1_000 });
      const wakeUpsAfterMs = since();
      isOver = true;
      await watching;
      await inOrder();
      failovers.push({ name, degradedAfterMs, wakeUpsAfterMs, readyAfterMs: since() });
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
