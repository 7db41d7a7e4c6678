import type { Knex } from "knex";
import { createSandboxCalls } from "../../src/parts/sandbox/cli/demo/sandbox-calls.ts";
import { applySnapshots } from "../../src/core/mirror/write/apply.ts";
import type { Snapshot, Resource } from "../../src/core/mirror/snapshot.ts";
import { createLog } from "../../src/platform/log.ts";
import { sandboxApiKey } from "../../src/app/create-runtime.ts";
import { resealCloses } from "./close/reseal-closes.ts";
import { startSandbox } from "../../src/parts/sandbox/start-sandbox.ts";

export type WireObject = Readonly<Record<string, unknown>>;

export interface ServiceState {
  orders: readonly WireObject[];
  transactions: readonly WireObject[];
  subscriptions: readonly WireObject[];
  customers: readonly WireObject[];
}

export interface Traffic {
  seed: string;
  orders: number;
  subscriptions: number;
  days: number;
  startsAt: string;
}

/**
 * Plays a merchant's life in a sandbox of its own and brings the mirror up to it, through the one writer: after each
 * part of the traffic every object as the service shows it. Gives back the service's last state.
 */
export async function playHistory(db: Knex, { seed, startsAt, ...traffic }: Traffic, parts = 2): Promise<ServiceState> {
  const log = createLog({ level: "silent", name: "test" });
  const sandbox = await startSandbox({ port: 0, host: "127.0.0.1", seed, log });
  const calls = createSandboxCalls(sandbox.url, sandboxApiKey);
  try {
    await calls.control("POST", "/clock", { now: startsAt });
    let state: ServiceState | undefined;
    for (let part = 0; part < parts; part++) {
      const share = (n: number) => Math.ceil(n / parts);
      await calls.control("POST", "/traffic", {
        orders: share(traffic.orders),
        subscriptions: share(traffic.subscriptions),
        days: traffic.days / parts,
        seed: `${seed}/${part}`,
        chargebacks: Math.ceil(share(traffic.orders) * 0.1),
      });
      const { clock } = await calls.control<{ clock: { now: string } }>("GET", "");
      state = await calls.snapshot();
      await mirrorState(db, state, clock.now);
    }
    if (state === undefined) throw new Error("no part was played");
    return state;
  } finally {
    await sandbox.close();
  }
}

const atOnce = 1_000;

export async function mirrorState(db: Knex, state: ServiceState, seenAt: string): Promise<void> {
  const of = (resource: Resource, objects: readonly WireObject[]) =>
    objects.map((object): Snapshot => ({
      resource,
      object,
      fallbackUpdatedAt: null,
      observedAt: new Date(seenAt).toISOString().replace("Z", "000Z"),
      cause: "test",
    }));
  const all = [
    ...of("order", state.orders),
    ...of("transaction", state.transactions),
    ...of("subscription", state.subscriptions),
    ...of("customer", state.customers),
  ];
  for (let from = 0; from < all.length; from += atOnce) {
    const batch = all.slice(from, from + atOnce);
    const { outcomes } = await db.transaction((trx) => applySnapshots(trx, batch));
    const unreadable = outcomes.find(({ outcome }) => outcome === "unreadable");
    if (unreadable !== undefined) throw new Error(JSON.stringify(unreadable));
  }
}

/** Every time by the database's clock that an answer as of a time rests on. */
const recordedTimes: readonly (readonly [table: string, columns: readonly string[]])[] = [
  ["mirror.versions", ["recorded_at"]],
  ["reconcile.finding_versions", ["recorded_at"]],
  ["reconcile.run_states", ["recorded_at"]],
  ["reconcile.coverage", ["completed_at", "revoked_at"]],
  ["reconcile.doubts", ["recorded_at", "settled_at"]],
  ["reports.closes", ["closed_at"]],
];

/** Makes everything recorded so far older, as if time had passed: history and closes are append-only otherwise. */
export async function letTimePass(db: Knex, interval = "1 hour"): Promise<void> {
  await db.transaction(async (trx) => {
    await trx.raw("set local session_replication_role = replica");
    for (const [table, columns] of recordedTimes) {
      const sets = columns.map((column) => `${column} = ${column} - cast(:interval as interval)`);
      await trx.raw(`update ${table} set ${sets.join(", ")}`, { interval });
    }
    await resealCloses(trx);
  });
}
