import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** `npm run screenshots`: writes the pictures of docs/dashboard.md. */
export default defineConfig({
  test: {
    root: fileURLToPath(new URL("../../../", import.meta.url)),
    include: ["test/dashboard/screenshots/screenshots.ts"],
    globalSetup: ["test/support/run-directory.ts", "test/support/global-setup.ts"],
    provide: { isTorture: false, isLong: false, isShort: false, poolerUrl: null },
    pool: "forks",
    testTimeout: 300_000,
    hookTimeout: 240_000,
  },
});
