import { expect, test } from "vitest";
import { durabilityProblem } from "../../src/platform/commit-durability.ts";

test.each([
  ["on", "off", "synchronous_commit is off"],
  ["off", "on", "fsync is off"],
  ["off", "off", "fsync is off"],
])("fsync %s and synchronous_commit %s: %s", (fsync, synchronousCommit, says) => {
  const problem = durabilityProblem({ fsync, synchronousCommit });
  expect(problem?.says).toContain(says);
});

test.each(["on", "local", "remote_write", "remote_apply"])(
  "synchronous_commit %s loses nothing",
  (synchronousCommit) => {
    expect(durabilityProblem({ fsync: "on", synchronousCommit })).toBeNull();
  },
);
