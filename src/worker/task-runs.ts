import type { Schedule } from "../queue/job-queue.ts";

/**
 * Something that runs on a schedule, on one worker at a time as a rule: two that overlap must do no harm. `stopping` is
 * aborted when the worker stops, which then waits some seconds for the task.
 */
export interface ScheduledTask {
  schedule: Schedule;
  run(stopping: AbortSignal): Promise<void>;
}

export interface TaskRuns {
  /** Runs a task, unless it is still at work here. A task that no longer exists may still have its schedule. */
  run(task: string): Promise<void>;
  /** Tells the tasks at work to stop, and begins none any more. */
  stop(): void;
}

/** Runs tasks beside each other: a night of reconciliation holds up nothing else. */
export function createTaskRuns(tasks: Readonly<Record<string, ScheduledTask>>): TaskRuns {
  const stopping = new AbortController();
  const atWork = new Set<string>();
  return {
    async run(name) {
      const task = Object.hasOwn(tasks, name) ? tasks[name] : undefined;
      if (task === undefined || atWork.has(name) || stopping.signal.aborted) return;
      atWork.add(name);
      try {
        await task.run(stopping.signal);
      } finally {
        atWork.delete(name);
      }
    },
    stop: () => stopping.abort(new Error("the worker stops")),
  };
}
