import { runEvery } from "../platform/every.ts";
import { defaultLaneOptions, startLane } from "./channel-lane.ts";
import type { LaneDeps, LaneOptions } from "./channel-lane.ts";
import type { Channel } from "./channels/channel.ts";
import { failOrphans } from "./outbox.ts";

export interface RunningSender {
  /** Takes no further row, finishes what is being sent, closes the channels. */
  close(): Promise<void>;
}

const orphansEveryMs = 60_000;

/**
 * Sends the rows of the outbox, one lane a channel. Any number of processes may do so at once. At least once: what
 * was sent by a process that was killed before it could say so is sent again, with the same key.
 */
export function startSender(
  deps: LaneDeps,
  channels: ReadonlyMap<string, Channel>,
  options: LaneOptions = defaultLaneOptions,
): RunningSender {
  const { log, db } = deps;
  const lanes = [...channels].map((channel) => startLane(deps, channel, options));
  const orphans = runEvery({ log, name: "alert orphans" }, orphansEveryMs, async () => {
    const failed = await failOrphans(db, [...channels.keys()]);
    if (failed > 0) log.error({ messages: failed }, "alerts for channels that do not exist");
    return { more: false };
  });
  return {
    async close() {
      await Promise.all([...lanes, orphans].map((loop) => loop.close()));
      await Promise.all([...channels.values()].map((channel) => channel.close()));
    },
  };
}
