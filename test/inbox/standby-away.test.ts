import type { Client } from "pg";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { InboxUnavailable } from "../../src/core/inbox/append.ts";
import { eventually } from "../support/eventually.ts";
import { type OwnServer, startOwnServer } from "../support/own-server.ts";
import { withServer } from "../support/server-commands.ts";
import { type InboxStand, openInbox } from "./inbox-stand.ts";
import { verifiedEvent } from "./stored-events.ts";

let server: OwnServer;
let inbox: InboxStand;
beforeAll(async () => {
  server = await startOwnServer({ wal_level: "replica", max_wal_senders: "2" });
  inbox = openInbox(server.url);
});
afterEach(() => waitFor(""));
afterAll(async () => {
  await inbox.close();
  await server.destroy();
});

/** From now on a commit waits for a standby of this name; for "", for none. */
async function waitFor(name: string): Promise<void> {
  await withServer(server.url, async (client) => {
    await client.query(`alter system set synchronous_standby_names = '${name}'`);
    await client.query("select pg_reload_conf()");
    // Sessions know the setting before commits follow it: the checkpointer begins and ends the waiting.
    await eventually("commits follow the setting", async () => {
      const { rows } = await client.query("show synchronous_standby_names");
      return rows[0].synchronous_standby_names === name && (await commitWaits(client)) === (name !== "");
    });
  });
}

/** Whether a commit of another session waits for a standby; it is not kept waiting. */
const commitWaits = (client: Client): Promise<boolean> =>
  withServer(server.url, async (probe) => {
    const { rows } = await probe.query("select pg_backend_pid() as pid");
    let committed = false;
    const commit = probe.query("select pg_logical_emit_message(true, 'probe', '')").then(() => {
      committed = true;
    });
    let waits = false;
    await eventually("the commit waits, or is there", async () => {
      const waiting = await client.query(
        `select pg_cancel_backend(pid) from pg_stat_activity where pid = $1 and wait_event = 'SyncRep'`,
        [rows[0].pid],
      );
      waits ||= waiting.rowCount === 1;
      return committed;
    });
    await commit;
    return waits;
  });

/** How long each session of the inbox waits for a standby, in milliseconds. */
const waits = (): Promise<number[]> =>
  withServer(server.url, async (client) => {
    const { rows } = await client.query<{ ms: number }>(
      `select (extract(epoch from clock_timestamp() - query_start) * 1000)::float8 as ms from pg_stat_activity
       where wait_event = 'SyncRep' and application_name = 'test inbox'`,
    );
    return rows.map(({ ms }) => ms);
  });

const append = (id: string) =>
  inbox.appender.append(verifiedEvent({ eventId: id, raw: Buffer.from(`{"id":"${id}"}`) }));

test("a repeat of what is stored is not acknowledged while its standby is away", async () => {
  expect(await append("evt_1")).toMatchObject({ duplicate: false });
  await waitFor("nobody");
  await expect(append("evt_1")).rejects.toThrow(InboxUnavailable);
  await waitFor("");
  expect(await append("evt_1")).toMatchObject({ duplicate: true });
});

test("while commits wait for a standby that is away, no further session begins to wait", async () => {
  await waitFor("nobody");
  await expect(append("evt_2")).rejects.toThrow(InboxUnavailable);
  await eventually("it waits for long", async () => (await waits()).some((ms) => ms > 4_000));
  const before = (await waits()).length;
  for (const id of ["evt_3", "evt_4", "evt_5"]) {
    await expect(append(id)).rejects.toMatchObject({
      cause: { message: "commits wait for a synchronous standby that does not answer" },
    });
  }
  expect(await waits()).toHaveLength(before);
  await waitFor("");
  expect(await append("evt_3")).toMatchObject({ duplicate: false });
  expect(await append("evt_2")).toMatchObject({ duplicate: true });
});
