import type { z } from "zod";
import { ConfigurationError } from "../../../platform/errors.ts";
import { type AlertItem, type SentMessage, runbookOf } from "../message.ts";
import { ofKind } from "../../../platform/setting-schemas.ts";
import { type Channel, maxItems } from "./channel.ts";
import { CannotOpen, type ChannelDeps } from "./channel-kind.ts";
import { email } from "./email.ts";
import { pagerDuty } from "./pagerduty.ts";
import { slack } from "./slack.ts";
import { standardOutput } from "./standard-output.ts";
import { webhook } from "./webhook.ts";

/** Every kind of channel, a file each. */
const channelKinds = [slack, email, pagerDuty, webhook, standardOutput];

type AnyKind = (typeof channelKinds)[number];

export type ChannelSettings = z.infer<AnyKind["settings"]>;

const nameOf = ({ settings }: AnyKind): ChannelSettings["kind"] => settings.shape.kind.value;

/** A channel in the settings, of any kind. */
export const channelSettings = ofKind(
  "kind",
  channelKinds.map(nameOf),
  channelKinds.map(({ settings }) => settings),
  '{ "kind": "stdout" }',
);

function kindNamed(name: ChannelSettings["kind"]): AnyKind {
  const found = channelKinds.find((kind) => nameOf(kind) === name);
  if (found === undefined) throw new TypeError(`no kind of channel is named ${name}`);
  return found;
}

/**
 * Opens all channels of the settings without contacting any. Throws one `ConfigurationError` that names every channel
 * that cannot work, with the variable or the host at fault. It shows no value of a variable.
 */
export function openChannels(
  settings: Readonly<Record<string, ChannelSettings>>,
  deps: ChannelDeps,
): ReadonlyMap<string, Channel> {
  const opened = Object.entries(settings).map(([name, each]) => [name, tryOpen(each, deps)] as const);
  const problems = opened.flatMap(([name, { problem }]) =>
    problem === undefined ? [] : [`  - channel "${name}": ${problem}.`],
  );
  if (problems.length > 0) {
    throw new ConfigurationError(`Alerts cannot be sent as set up:\n${problems.join("\n")}`);
  }
  return new Map(opened.flatMap(([name, { channel }]) => (channel === undefined ? [] : [[name, channel]])));
}

export type Opened = { channel: Channel; problem?: never } | { problem: string; channel?: never };

/** Opens one channel, or returns why it cannot work, with the remedy. */
export function tryOpen(settings: ChannelSettings, deps: ChannelDeps): Opened {
  try {
    // The kind is the one of these settings, which the type of a list of kinds cannot express.
    return { channel: withRunbooks(kindNamed(settings.kind).open(settings as never, deps), deps) };
  } catch (error) {
    if (error instanceof CannotOpen) return { problem: error.message };
    throw error;
  }
}

/** Adds to each message where its rule is explained, when it is sent: also to those that were queued before. */
const withRunbooks = (channel: Channel<SentMessage>, { runbooksUrl }: Pick<ChannelDeps, "runbooksUrl">): Channel => ({
  kind: channel.kind,
  host: channel.host,
  send: (message, options) => channel.send({ ...message, runbook: runbookOf(message.rule, runbooksUrl) }, options),
  close: () => channel.close(),
});

/** Whether a kind of channel keeps incidents. False for a channel that the settings no longer have. */
export const keepsIncidents = (kind: ChannelSettings["kind"] | undefined): boolean =>
  kind !== undefined && kindNamed(kind).keepsIncidents === true;

/**
 * Splits a list into as many messages as a channel needs to show every item; each has at least one item. A channel that
 * the settings no longer have gets one list.
 */
export function listParts<T>(
  kind: ChannelSettings["kind"] | undefined,
  all: readonly T[],
  itemOf: (one: T) => AlertItem,
): T[][] {
  if (kind === undefined) return [[...all]];
  const { size, sizeOf } = kindNamed(kind).list;
  const parts: T[][] = [];
  let room = 0;
  for (const one of all) {
    const needed = sizeOf(itemOf(one));
    const last = parts.at(-1);
    if (last === undefined || needed > room || last.length >= maxItems) {
      parts.push([one]);
      room = size - needed;
    } else {
      last.push(one);
      room -= needed;
    }
  }
  return parts;
}
