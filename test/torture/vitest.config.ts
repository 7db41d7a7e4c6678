import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  root: fileURLToPath(new URL("../../", import.meta.url)),
  test: {
    include: [
      "test/torture/**/*.test.ts",
      // What these leave out in `npm test` (see isTorture).
      "test/bench/smoke.test.ts",
      "test/e2e/postgres-outages.test.ts",
      "test/e2e/redis-outages.test.ts",
      "test/e2e/silent-failover.test.ts",
      "test/mirror/any-order.test.ts",
      "test/nullable-columns.test.ts",
      "test/platform/postgres/session-settings.test.ts",
      "test/reports/live-settlement.test.ts",
    ],
    provide: { isTorture: true },
    globalSetup: [
      "test/support/run-directory.ts",
      "test/support/redis-notice.ts",
      "test/support/image.ts",
      "test/support/global-setup.ts",
    ],
    pool: "forks",
    // One at a time: the processes under torture are to have the machine.
    maxWorkers: 1,
    disableConsoleIntercept: true,
    testTimeout: 900_000,
    hookTimeout: 60_000,
  },
});
