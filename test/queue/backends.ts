import type { Queue } from "bullmq";
import { type BackendLocation, createBackend, migrateQueueSchema } from "../../src/core/queue/backend.ts";
import type { JobQueue } from "../../src/core/queue/job-queue.ts";
import { createTestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { redisAvailable, startRedis } from "../support/redis.ts";

export interface TestBackend {
  location: BackendLocation;
  destroy(): Promise<void>;
}

export async function startPostgresBackend(): Promise<TestBackend> {
  const { url, destroy } = await createTestDatabase();
  await migrateQueueSchema(url);
  return { location: { kind: "postgres", url }, destroy };
}

async function startRedisBackend(): Promise<TestBackend> {
  const server = await startRedis();
  return { location: { kind: "redis", url: server.url }, destroy: () => server.stop() };
}

/** What every suite of the queue runs on. */
export const testBackends = [
  { name: "PostgreSQL", start: startPostgresBackend },
  // Without redis-server the run has said so in its one line.
  ...(redisAvailable ? [{ name: "Redis", start: startRedisBackend }] : []),
];

export async function untilAnswering(queue: Pick<JobQueue, "depth">): Promise<void> {
  await eventually("the queue answers", () => queue.depth().then(() => true));
}

/** A job came back, by whichever consumer. */
export async function untilWorking(queue: Pick<JobQueue, "roundTrip">): Promise<void> {
  await eventually("a job comes back", () =>
    queue.roundTrip({ withinMs: 1_000 }).then(
      () => true,
      () => false,
    ),
  );
}

/** What BullMQ itself keeps of a queue, for as long as `look` takes. */
export async function withBareQueue<T>(location: BackendLocation, look: (queue: Queue) => Promise<T>): Promise<T> {
  const queue = createBackend(location).queue();
  queue.on("error", () => {});
  try {
    await eventually("the bare queue answers", async () => (await queue.getWaitingCount()) >= 0);
    return await look(queue);
  } finally {
    await queue.close();
  }
}

export interface Gate {
  passed: Promise<void>;
  open(): void;
}

/** Holds back whoever awaits it until it is opened. */
export function createGate(): Gate {
  let open = (): void => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open };
}
