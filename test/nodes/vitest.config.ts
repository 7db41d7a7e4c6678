import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/**
 * `.ci/run` runs these on the other Nodes that the program has to run on (docs/contributing.md): the way of a signed
 * webhook to a row of the mirror, in process and in programs of their own. All the other tests run on one Node alone.
 */
const mainJob = [
  "test/nodes/*.test.ts",
  "test/contract/signature/signature-schemes.test.ts",
  "test/receiver/{connection-limits,deadlines,forged-signatures,rotation,shutdown}.test.ts",
  "test/receiver/{webhook-bodies,webhook-signatures}.test.ts",
  "test/inbox/{append,claim,relay}.test.ts",
  "test/queue/job-queue.test.ts",
  "test/worker/{apply-loop,refetch}.test.ts",
  "test/mirror/{decode,rows,version}.test.ts",
  "test/client/*.test.ts",
  "test/e2e/trigger.test.ts",
];

export default defineConfig({
  root: fileURLToPath(new URL("../../", import.meta.url)),
  test: {
    name: `Node ${process.versions.node}`,
    include: mainJob,
    provide: { isTorture: false, isLong: false, isShort: false, poolerUrl: null },
    globalSetup: [
      "test/support/run-directory.ts",
      "test/support/redis-notice.ts",
      "test/support/global-setup.ts",
      "test/support/image.ts",
    ],
    pool: "forks",
    isolate: false,
    // Two of these run side by side, on two CPUs.
    maxWorkers: 2,
    testTimeout: 180_000,
    hookTimeout: 240_000,
  },
});
