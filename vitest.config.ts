import { defineConfig } from "vitest/config";
import { longTests, longerTests } from "./test/long-tests.ts";
import { LongestFirst } from "./test/support/longest-first.ts";

const isNamed = process.argv.slice(2).some((argument) => argument.endsWith(".test.ts"));

/** Mode `long`: the long tests alone, and with more cases those whose properties `npm test` tries with few. */
export default defineConfig(({ mode }) => ({
  test: {
    include: mode === "long" ? [...longTests, ...longerTests] : ["test/**/*.test.ts"],
    exclude: ["test/torture/**", ...(mode === "long" || isNamed ? [] : longTests)],
    globalSetup: [
      "test/support/run-directory.ts",
      "test/support/redis-notice.ts",
      "test/support/chromium-notice.ts",
      "test/support/prometheus-notice.ts",
      "test/support/global-setup.ts",
      "test/support/image.ts",
    ],
    // Processes, not threads: tests send signals, change environments and load CPU.
    pool: "forks",
    // Sources that did not change are not transformed again.
    experimental: { fsModuleCache: true },
    // Most of a file's time would go into loading the program again; what a file opens, it closes.
    isolate: false,
    // Twice the CPUs of the smallest machine: much of the time is waiting, for processes and time limits.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    provide: { isTorture: false, isLong: mode === "long", isShort: false, poolerUrl: null },
    testTimeout: 180_000,
    hookTimeout: 240_000,
  },
}));
