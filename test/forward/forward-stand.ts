import type { Knex } from "knex";
import { Webhook } from "standardwebhooks";
import { type RunningDispatch, startDispatch } from "../../src/parts/delivery/dispatch/start-dispatch.ts";
import { openDestinations } from "../../src/parts/delivery/forward/destination.ts";
import { forwardWork } from "../../src/parts/delivery/forward/forward-work.ts";
import {
  type DestinationSettings,
  type ForwardSettings,
  guardFor,
  loadForwardSettings,
} from "../../src/parts/delivery/forward/settings.ts";
import { wallClock } from "../../src/platform/clock.ts";
import { type ResolveHost, createDestinationGuard } from "../../src/platform/http/destination-guard.ts";
import { createLog } from "../../src/platform/log.ts";
import { createDatabase } from "../../src/platform/postgres/pool.ts";
import { seededRandom } from "../../src/platform/random.ts";
import { type ReceivedPost } from "../alerts/channels/channel-server.ts";
import { testPooling } from "../support/pooling.ts";

export const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/** Settings with one destination, "crm", read as those of a file are. */
export const settingsFor = (
  url: string,
  given: Partial<DestinationSettings> = {},
  privateHosts = ["127.0.0.1"],
): ForwardSettings => {
  const crm = { url, send: "changes", secretFrom: "FORWARD_CRM", ...given };
  return loadForwardSettings("forward.jsonc", () => JSON.stringify({ destinations: { crm }, privateHosts }));
};

export interface ForwardOptions {
  secrets?: string;
  resolve?: ResolveHost;
  retryMs?: number;
}

/** A worker's part in forwarding, with a pool of its own. Retries follow at once. */
export function openForward(
  databaseUrl: string,
  settings: ForwardSettings,
  { secrets = secret, resolve, retryMs = 1 }: ForwardOptions = {},
): RunningDispatch {
  const db = createDatabase({
    url: databaseUrl,
    pooling: testPooling(),
    poolMax: 2,
    applicationName: "tallyhook test",
  });
  const hosts = Object.values(settings.destinations).map(({ url }) => new URL(url).hostname);
  const destinations = openDestinations(settings.destinations, {
    guard:
      resolve === undefined
        ? guardFor(settings)
        : createDestinationGuard({ ...settings, allowedHosts: hosts, listsUnder: "" }, resolve),
    clock: wallClock,
    secretOf: () => secrets,
  });
  const log = createLog({ level: "silent", name: "test" });
  const deps = { db, log, clock: wallClock, random: seededRandom(1) };
  const dispatch = startDispatch(deps, destinations, forwardWork({ db }), {
    pollMs: 10,
    leaseMarginMs: 60_000,
    retry: { baseDelayMs: retryMs, maxDelayMs: retryMs },
  });
  return {
    ...dispatch,
    async close() {
      await dispatch.close();
      await Promise.all(destinations.map((destination) => destination.close()));
      await db.destroy();
    },
  };
}

/** What a subscriber sees, by the library that it would use; throws where the signature is not right. */
export const verified = ({ body, headers }: ReceivedPost, key = secret): unknown =>
  new Webhook(key).verify(body, headers as Record<string, string>);

export const runsOf = (db: Knex) =>
  db("dispatch.runs").orderBy("seq").select("id", "kind", "state", "attempts", "error");
