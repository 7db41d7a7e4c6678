import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/torture/**"],
    globalSetup: ["test/support/redis-notice.ts", "test/support/global-setup.ts"],
    // Processes, not threads: tests send signals, change environments and load CPU.
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
