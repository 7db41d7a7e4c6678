import type { Knex } from "knex";
import { openChannels } from "../../../src/parts/alerts/channels/channel-kinds.ts";
import type { AlertMessage } from "../../../src/parts/alerts/message.ts";
import {
  type SenderOptions,
  type RunningSender,
  defaultSenderOptions,
  startSender,
} from "../../../src/parts/alerts/outbox/sender.ts";
import type { ChannelSettings } from "../../../src/parts/alerts/channels/channel-kinds.ts";
import { type Clock, wallClock } from "../../../src/platform/clock.ts";
import { createLog } from "../../../src/platform/log.ts";
import { seededRandom } from "../../../src/platform/random.ts";
import { channelDeps } from "../channels/channel-deps.ts";
import { message } from "../messages.ts";

/** An alert of its own; its number. */
export async function storeAlert(db: Knex, { key, state = "open" }: { key: string; state?: string }): Promise<number> {
  const { rows } = await db.raw<{ rows: { id: string }[] }>(
    `insert into alerts.alerts (key, rule, severity, state, stage, opened_at, updated_at, found_by)
     values (?, 'dunning_renewal', 'error', ?, 'opened', now(), now(), 'event') returning id`,
    [key, state],
  );
  return Number(rows[0]?.id);
}

export interface Wish {
  channel: string;
  alertId: number | null;
  stage: string;
  action?: AlertMessage["action"];
  /** From now. */
  dueInSeconds?: number;
}

/** Puts one message into the outbox, as what writes alerts does. */
export async function queueMessage(
  db: Knex,
  { channel, alertId, stage, action = "trigger", dueInSeconds = 0 }: Wish,
): Promise<void> {
  const dedupKey = `alert-${alertId ?? "none"}`;
  const sent: AlertMessage = {
    ...message,
    dedupKey,
    idempotencyKey: `${dedupKey}/${stage}/${channel}`,
    action,
    stage,
  };
  await db.raw(
    `insert into alerts.outbox (channel, alert_id, stage, action, message, due_at)
     values (?, ?, ?, ?, ?::jsonb, now() + make_interval(secs => ?))`,
    [channel, alertId, stage, action, JSON.stringify(sent), dueInSeconds],
  );
}

export interface OutboxState {
  channel: string;
  stage: string;
  state: string;
  attempts: number;
  last_error: string | null;
}

/** The outbox in the order in which it was filled. */
export async function outboxOf(db: Knex): Promise<OutboxState[]> {
  return db<OutboxState>("alerts.outbox").select("channel", "stage", "state", "attempts", "last_error").orderBy("id");
}

export interface TestSender extends RunningSender {
  logged(): string;
}

/**
 * A sender that polls fast, with a channel for each of these addresses: of Slack, or by mail where it is one of a mail
 * server.
 */
export function startTestSender(
  db: Knex,
  urls: Readonly<Record<string, string>>,
  { clock = wallClock, ...options }: Partial<SenderOptions> & { clock?: Clock } = {},
): TestSender {
  const secrets = Object.fromEntries(Object.entries(urls).map(([name, url]) => [`ALERT_${name.toUpperCase()}`, url]));
  const settings = Object.fromEntries(
    Object.entries(urls).map(([name, url]): [string, ChannelSettings] => [
      name,
      url.startsWith("smtp:")
        ? { kind: "email", to: ["team@example.com"] }
        : { kind: "slack", urlFrom: `ALERT_${name.toUpperCase()}` },
    ]),
  );
  const lines: string[] = [];
  const log = createLog({
    level: "info",
    name: "test",
    destination: { write: (line) => void lines.push(line) },
  });
  const smtpUrl = Object.values(urls).find((url) => url.startsWith("smtp:"));
  const smtp = smtpUrl === undefined ? null : { url: smtpUrl, from: "tallyhook@example.com" };
  const channels = openChannels(settings, channelDeps({ privateHosts: ["127.0.0.1"], secrets, smtp }));
  const sender = startSender({ db, log, clock, random: seededRandom("sender") }, channels, {
    ...defaultSenderOptions,
    pollMs: 10,
    ...options,
  });
  return { ...sender, logged: () => lines.join("") };
}
