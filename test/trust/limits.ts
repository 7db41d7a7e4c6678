import type { NamedTest } from "./named-tests.ts";

/** The limits that docs/operations.md lists, each with the tests that see it act. */
export const limits: Readonly<Record<string, readonly NamedTest[]>> = {
  "Writing the mirror": [
    { file: "test/limits.test.ts", title: "a writer is ended by %s" },
    { file: "test/limits.test.ts", title: "a writer does not gain time by beginning twice" },
  ],
  "A process's turn": [
    {
      file: "test/limits.test.ts",
      title: "a worker that is stopped keeps the events that it claimed no longer than that",
    },
    { file: "test/limits.test.ts", title: "a process that is stopped while it %s leaves the turn to another one" },
    { file: "test/limits.test.ts", title: "a run of reconciliation that is stopped within a transaction loses it" },
  ],
  "A scheduled task's turn": [
    {
      file: "test/worker/scheduled-tasks.test.ts",
      title: "of a worker that was killed are another worker's when its turn is over",
    },
  ],
  "A lock on the side": [{ file: "test/limits.test.ts", title: "what must not wait for a locked table does not" }],
  "A migration's lock": [
    {
      file: "test/platform/postgres/migrating-under-load.test.ts",
      title: "a migration that gets no lock in time says so, and nothing is half done",
    },
  ],
  "A transactional handler": [
    {
      file: "test/dispatch/hostile-handlers.test.ts",
      title: "a transaction that is over takes no statement: not after the deadline, and not after run has returned",
    },
  ],
  "An alert's description": [
    { file: "test/worker/isolated-alerts.test.ts", title: "takes no longer than a writer of the mirror has" },
  ],
  "Storing an event": [
    {
      file: "test/inbox/append.test.ts",
      title: "a statement that waits for a lock is given up; should it commit later, it is one event",
    },
    {
      file: "test/inbox/append.test.ts",
      title: "a hung connection is given up with all that waits behind it, and not used again",
    },
    { file: "test/inbox/append.test.ts", title: "refuses what would wait past the bound in %s, and nothing else" },
  ],
  "A request to the receiver": [
    {
      file: "test/receiver/connection-limits.test.ts",
      title: "with the limits that are set from the start no request is held for 10 s",
    },
    {
      file: "test/receiver/connection-limits.test.ts",
      title: "in chunks ends at the limit, and what follows is not kept",
    },
    {
      file: "test/receiver/connection-limits.test.ts",
      title: "a new one takes the place of the oldest that has sent nothing",
    },
  ],
  "A check of readiness": [
    {
      file: "test/receiver/readiness.test.ts",
      title: "a check that hangs does not hang the answer, and is not started twice",
    },
  ],
  "Statements of a pool with its own limit": [
    { file: "test/limits.test.ts", title: "a pool's own limit of a statement acts" },
    { file: "test/platform/postgres/pool.test.ts", title: "a pool gives up waiting for a free connection" },
  ],
  "A call to the service": [
    { file: "test/client/service-client.test.ts", title: "ends at its deadline, whatever it is doing" },
    {
      file: "test/client/service-client.test.ts",
      title: "longer than allowed is not read to its end, nor asked for again",
    },
  ],
  "A message to a channel": [
    {
      file: "test/alerts/channels/http-channels.test.ts",
      title: "an answer without an end is cut off and counts by its status",
    },
    {
      file: "test/alerts/outbox/start-sender.test.ts",
      title: "a channel that hangs holds up no other, and its messages may have arrived",
    },
  ],
  "A forwarded webhook": [
    {
      file: "test/forward/forward-changes.test.ts",
      title: "a subscriber that hangs fails at the time-out, and other objects go on meanwhile",
    },
  ],
  "The queue": [
    {
      file: "test/queue/outage.test.ts",
      title: "is told of within about two seconds when the line is %s, and is over when it is back",
    },
  ],
  "The dashboard": [
    {
      file: "test/dashboard/attacks.test.ts",
      title: "pages that hang are answered up to a number, and people can still sign in and out",
    },
    {
      file: "test/dashboard/attacks.test.ts",
      title: "is stopped for an account, also when each guess comes from another address",
    },
  ],
};
