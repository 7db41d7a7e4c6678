/** The dashboard as built, on a clock that begins at a time of the filled year: `dashboard.js PORT TIME`. */
import { runDashboard } from "../../src/main/run-dashboard.ts";
import { loadConfig } from "../../src/app/config/config.ts";
import { createRuntime } from "../../src/app/create-runtime.ts";
import { createLog } from "../../src/platform/log.ts";
import { allParts } from "../../src/main/parts.ts";

const [port = "", beginsAt = ""] = process.argv.slice(2);
const beginsAtMs = Date.parse(beginsAt);
const clock = { now: () => new Date(beginsAtMs + performance.now()), observe: () => {} };
const runtime = createRuntime(
  allParts,
  loadConfig({ ...process.env, DASHBOARD_PORT: port, TALLYHOOK_TIME_ZONE: "Europe/Berlin" }),
  createLog({ level: "warn", name: "dashboard" }),
);
await runDashboard({ ...runtime, wallClock: clock, serviceClock: clock });
process.once("SIGTERM", () => void runtime.close());
