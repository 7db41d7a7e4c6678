/**
 * A sender as a process of its own, for tests that kill it: `DATABASE_URL CHANNEL_URL LEASE_MS`. It is loaded ahead,
 * begins when its parent tells it to, and ends with its parent.
 */
import { once } from "node:events";
import { createDatabase } from "../../../src/platform/postgres/pool.ts";
import { startTestSender } from "./outbox-stand.ts";

const [databaseUrl = "", channelUrl = "", leaseMs = ""] = process.argv.slice(2);
process.once("disconnect", () => process.exit());
await once(process, "message");
const db = createDatabase({ url: databaseUrl, poolMax: 2, applicationName: "tallyhook test" });
startTestSender(db, { team: channelUrl }, { leaseMs: Number(leaseMs), concurrency: 4 });
