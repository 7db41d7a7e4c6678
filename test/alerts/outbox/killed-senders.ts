import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Random } from "../../../src/platform/random.ts";
import type { TestDatabase } from "../../support/database.ts";
import { eventually } from "../../support/eventually.ts";
import { startChannelServer } from "../channels/channel-server.ts";
import { queueMessage, storeAlert } from "./outbox-stand.ts";

const program = fileURLToPath(new URL("./sender-program.ts", import.meta.url));
/** Longer than a message takes here, and not longer than a test should. */
const leaseMs = 700;

export interface KillReport {
  queued: string[];
  /** The keys that came, in their order, repeats included. */
  came: string[];
  unsent: number;
  /** What was at the channel and not marked in the moments of the kills. */
  heldAtKills: number;
}

/**
 * Fills the outbox, and kills the sender with SIGKILL so many times, each time when the channel has a message and has
 * not answered yet: sent, and not marked. Then the last sender empties the outbox.
 */
export async function sendWithKills(
  { db, url }: TestDatabase,
  { kills, random }: { kills: number; random: Random },
): Promise<KillReport> {
  const queued: string[] = [];
  for (let n = 0; n < kills * 6 + 10; n++) {
    const alertId = await storeAlert(db, { key: `killed-${n}` });
    await queueMessage(db, { channel: "team", alertId, stage: "opened" });
    queued.push(`alert-${alertId}/opened/team`);
  }
  const server = await startChannelServer();
  const load = (): ChildProcess => fork(program, [url, server.url, String(leaseMs)], { execArgv: ["--import", "tsx"] });
  let [running, spare] = [load(), load()];
  let heldAtKills = 0;
  try {
    for (let n = 0; n < kills; n++) {
      const victim = running;
      let unanswered = 1 + Math.floor(random() * 4);
      server.answerWith((response) => {
        if (--unanswered > 0) return response.end();
        if (victim.killed) return response.destroy();
        heldAtKills += 1;
        victim.kill("SIGKILL");
      });
      const exited = once(victim, "exit");
      victim.send("go");
      const [code, signal] = (await exited) as [number | null, string | null];
      if (signal !== "SIGKILL") throw new Error(`the sender ended by itself (${code})`);
      [running, spare] = [spare, load()];
    }
    server.answerWith((response) => response.end());
    running.send("go");
    await eventually("everything is sent", async () => (await countUnsent(db)) === 0, {
      withinMs: 30_000,
    });
    const came = server.posts.map(({ headers }) => String(headers["idempotency-key"]));
    return { queued, came, unsent: await countUnsent(db), heldAtKills };
  } finally {
    for (const child of [running, spare]) child.kill("SIGKILL");
    await server.close();
  }
}

async function countUnsent(db: TestDatabase["db"]): Promise<number> {
  const { rows } = await db.raw<{ rows: { n: number }[] }>(
    "select count(*)::int as n from alerts.outbox where state <> 'sent'",
  );
  return rows[0]?.n ?? -1;
}
