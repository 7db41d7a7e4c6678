import type { Schedule } from "../queue/job-queue.ts";

/**
 * Something that runs on a schedule, on one worker at a time as a rule: two that overlap must do no harm. `stopping` is
 * aborted when the worker stops, which then waits some seconds for the task.
 */
export interface ScheduledTask {
  schedule: Schedule;
  run(stopping: AbortSignal): Promise<void>;
}

/**
 * Makes what runs a task by its name, but for one that is still at work here: its schedule fires on. A task that no
 * longer exists may have its schedule in the queue all the same.
 */
export function createTaskRunner(
  tasks: Readonly<Record<string, ScheduledTask>>,
  stopping: AbortSignal,
): (name: string) => Promise<void> {
  const atWork = new Set<string>();
  return async (name) => {
    const task = Object.hasOwn(tasks, name) ? tasks[name] : undefined;
    if (task === undefined || atWork.has(name) || stopping.aborted) return;
    atWork.add(name);
    try {
      await task.run(stopping);
    } finally {
      atWork.delete(name);
    }
  };
}
