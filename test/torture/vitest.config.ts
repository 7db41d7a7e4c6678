import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { pgbouncerInstalled } from "../support/pgbouncer.ts";
import { hasScalePackages } from "../support/scale-packages.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

const globalSetup = [
  "test/support/run-directory.ts",
  "test/support/redis-notice.ts",
  "test/support/image.ts",
  "test/support/global-setup.ts",
];

/** `npm run torture -- scale --mode short`: the part of test/torture/scale that CI has the time for. */
const short = (isPossible: boolean) => ({
  root,
  test: {
    name: "scale",
    include: isPossible
      ? [
          "test/torture/scale/many.test.ts",
          "test/torture/scale/postgres-failover.test.ts",
          "test/torture/scale/redis-cluster.test.ts",
        ]
      : [],
    provide: { isTorture: false, isLong: false, isShort: true, poolerUrl: null },
    globalSetup,
    pool: "forks" as const,
    testTimeout: 300_000,
    hookTimeout: 60_000,
  },
});

export default defineConfig(({ mode }) => ({
  root,
  test: {
    // One at a time: the processes under torture are to have the machine. In the short form half of it is waiting.
    maxWorkers: mode === "short" ? 2 : 1,
    disableConsoleIntercept: true,
    passWithNoTests: mode === "short",
    projects:
      mode === "short"
        ? [short(hasScalePackages())]
        : [
            {
              root,
              test: {
                name: "torture",
                include: [
                  "test/torture/**/*.test.ts",
                  // What these leave out in `npm test` (see isTorture).
                  "test/bench/endings.test.ts",
                  "test/bench/smoke.test.ts",
                  "test/e2e/exit-codes.test.ts",
                  "test/e2e/postgres-outages.test.ts",
                  "test/e2e/redis-outages.test.ts",
                  "test/e2e/silent-failover.test.ts",
                  "test/feed/psql-reader.test.ts",
                  "test/inbox/partitions.test.ts",
                  "test/main/retention.test.ts",
                  "test/mirror/any-order.test.ts",
                  "test/nullable-columns.test.ts",
                  "test/platform/postgres/session-settings.test.ts",
                  "test/reconcile/invariants/sandbox-traffic.test.ts",
                  "test/reports/as-of-for-ever.test.ts",
                  "test/reports/live-settlement.test.ts",
                  "test/sandbox/oversize-bodies.test.ts",
                ],
                provide: { isTorture: true, isLong: false, isShort: false, poolerUrl: null },
                globalSetup,
                pool: "forks",
                testTimeout: 900_000,
                hookTimeout: 60_000,
              },
            },
            {
              root,
              test: {
                // The tests of the main job once more, by way of PgBouncer in transaction mode.
                name: "pooler",
                include: pgbouncerInstalled
                  ? [
                      "test/alerts/**/*.test.ts",
                      "test/dispatch/**/*.test.ts",
                      "test/feed/**/*.test.ts",
                      "test/forward/**/*.test.ts",
                      "test/inbox/**/*.test.ts",
                      "test/mirror/**/*.test.ts",
                      "test/receiver/**/*.test.ts",
                      "test/reconcile/**/*.test.ts",
                      "test/reports/**/*.test.ts",
                      "test/worker/**/*.test.ts",
                    ]
                  : [],
                // They start processes, which `test/torture/scale/pooler.test.ts` does by way of the pooler.
                exclude: ["test/dispatch/host/*.test.ts", "test/dispatch/kill.test.ts", "test/reconcile/kill.test.ts"],
                provide: { isTorture: false, isLong: false, isShort: false },
                globalSetup: [...globalSetup, "test/support/start-pooler.ts"],
                pool: "forks",
                isolate: false,
                testTimeout: 180_000,
                hookTimeout: 240_000,
              },
            },
          ],
  },
}));
