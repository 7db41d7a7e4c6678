import { expect, test } from "vitest";
import { type ServerState, pairProblem, replayOf } from "../../../src/platform/postgres/standby.ts";

const names = { primary: "DATABASE_URL", standby: "REPORTS_DATABASE_URL" };
const at = new Date("2026-11-23T10:00:00Z");
const primary: ServerState = {
  system: "7001",
  database: "16384",
  isStandby: false,
  at,
  position: 1_000n,
  replayedAt: null,
  isPaused: false,
  isReceiving: false,
};
const standby: ServerState = {
  ...primary,
  isStandby: true,
  position: 400n,
  replayedAt: new Date("2026-11-23T09:59:58.500Z"),
  isReceiving: true,
};

test("a standby of the primary, of the same database, is taken", () => {
  expect(pairProblem({ primary, standby }, names)).toBeNull();
});

test.each([
  ["another cluster", { system: "7002" }, {}, "belongs to another cluster (system identifier 7002"],
  ["no standby", { isStandby: false }, {}, "is no standby: it is the primary itself, or was made"],
  ["another database of the cluster", { database: "5" }, {}, "names another database"],
  ["one that follows another primary", { position: 1_001n }, {}, "never wrote"],
  ["two standbys", {}, { isStandby: true }, "DATABASE_URL: the server is a standby"],
])("%s is refused, with what to do", (_, ofStandby, ofPrimary, message) => {
  const problem = pairProblem({ primary: { ...primary, ...ofPrimary }, standby: { ...standby, ...ofStandby } }, names);
  expect(problem).toContain(message);
  expect(problem).toMatch(/Point |Name the same/);
});

test("the lag is what the primary has written since, and the time since the last commit that was replayed", () => {
  expect(replayOf(primary, standby)).toEqual({
    until: standby.replayedAt,
    lagMs: 1_500,
    lagBytes: 600,
  });
});

test("a standby that has all is as of the primary's clock, however long ago the last commit was", () => {
  const idle = { ...standby, position: 1_000n, replayedAt: new Date("2026-11-20T00:00:00Z") };
  expect(replayOf(primary, idle)).toEqual({ until: at, lagMs: 0, lagBytes: 0 });
  expect(replayOf(primary, { ...idle, replayedAt: null })).toMatchObject({ lagMs: 0 });
});

test("a standby that has replayed no commit and is behind has a lag that nobody knows", () => {
  expect(replayOf(primary, { ...standby, replayedAt: null })).toBeNull();
});
