import { type SignatureScheme, secretProblem } from "../../contract/signature/verification.ts";
import type { Clock } from "../../platform/clock.ts";
import { ConfigurationError } from "../../platform/errors.ts";
import { openMailer } from "../../platform/mail.ts";
import type { AlertItem } from "../message.ts";
import type { ChannelSettings } from "../settings.ts";
import { type Channel, maxItems } from "./channel.ts";
import { type DestinationGuard, type HttpPost, createHttpPost } from "./destinations.ts";
import { createEmailChannel } from "./email.ts";
import { createPagerDutyChannel } from "./pagerduty.ts";
import { createSlackChannel, itemText } from "./slack.ts";
import { createStandardOutputChannel } from "./standard-output.ts";
import { createSignedWebhookChannel } from "./webhook.ts";

export interface ChannelDeps {
  guard: DestinationGuard;
  /** Wall clock. */
  clock: Clock;
  /** The value of a variable ALERT_…; null where it is not set. */
  secretOf: (variable: string) => string | null;
  /** Null where no mail is configured. */
  smtp: { url: string; from: string } | null;
  /** The scheme by which this deployment verifies webhooks. */
  scheme: SignatureScheme;
  writeLine: (line: string) => void;
}

/**
 * Opens all channels of the settings without contacting any. Throws one `ConfigurationError` that names every channel
 * that cannot work, with the variable or the host at fault. It shows no value of a variable.
 */
export function openChannels(
  settings: Readonly<Record<string, ChannelSettings>>,
  deps: ChannelDeps,
): ReadonlyMap<string, Channel> {
  const opened = Object.entries(settings).map(
    ([name, each]) => [name, tryOpen(each, deps)] as const,
  );
  const problems = opened.flatMap(([name, { problem }]) =>
    problem === undefined ? [] : [`  - channel "${name}": ${problem}.`],
  );
  if (problems.length > 0) {
    throw new ConfigurationError(`Alerts cannot be sent as set up:\n${problems.join("\n")}`);
  }
  return new Map(
    opened.flatMap(([name, { channel }]) => (channel === undefined ? [] : [[name, channel]])),
  );
}

export type Opened = { channel: Channel; problem?: never } | { problem: string; channel?: never };

/** Opens one channel, or says why it cannot work and what to do. */
export function tryOpen(settings: ChannelSettings, deps: ChannelDeps): Opened {
  try {
    return { channel: open(settings, deps) };
  } catch (error) {
    if (error instanceof CannotOpen) return { problem: error.message };
    throw error;
  }
}

class CannotOpen extends Error {}

function open(settings: ChannelSettings, deps: ChannelDeps): Channel {
  switch (settings.kind) {
    case "slack":
      return createSlackChannel(httpTo(secret(settings.urlFrom, deps), settings.urlFrom, deps));
    case "pagerduty":
      return createPagerDutyChannel(
        httpTo(settings.url, "url", deps),
        secret(settings.routingKeyFrom, deps),
      );
    case "webhook":
      return openWebhook(settings, deps);
    case "email":
      return openEmail(settings, deps);
    case "stdout":
      return createStandardOutputChannel(deps.writeLine, settings.format);
  }
}

function openWebhook(
  { urlFrom, secretFrom }: Extract<ChannelSettings, { kind: "webhook" }>,
  deps: ChannelDeps,
): Channel {
  const signingSecret = secret(secretFrom, deps);
  const problem = secretProblem(deps.scheme.name, signingSecret);
  if (problem !== null) throw new CannotOpen(`${secretFrom} ${problem}`);
  return createSignedWebhookChannel(httpTo(secret(urlFrom, deps), urlFrom, deps), {
    scheme: deps.scheme,
    secret: signingSecret,
    clock: deps.clock,
  });
}

function openEmail(
  { to }: Extract<ChannelSettings, { kind: "email" }>,
  { smtp, guard }: ChannelDeps,
): Channel {
  if (smtp === null) throw new CannotOpen("SMTP_URL and MAIL_FROM are not set; it needs both");
  const host = new URL(smtp.url).hostname.replace(/^\[|\]$/g, "").toLowerCase();
  const refused = guard.hostRefusal(host);
  if (refused !== null) throw new CannotOpen(`SMTP_URL: ${refused}`);
  const mailer = openMailer({ ...smtp, connect: guard.connect });
  const domain = smtp.from.slice(smtp.from.lastIndexOf("@") + 1);
  return createEmailChannel({ mailer, host, to, domain });
}

function secret(variable: string, { secretOf }: ChannelDeps): string {
  const value = secretOf(variable);
  if (value === null) throw new CannotOpen(`set ${variable} or ${variable}_FILE`);
  return value;
}

function httpTo(text: string, variable: string, deps: ChannelDeps): HttpPost {
  if (!URL.canParse(text) || !/^https?:/i.test(text)) throw new CannotOpen(`${variable} is no URL`);
  const url = new URL(text);
  if (url.username !== "" || url.password !== "") {
    throw new CannotOpen(`${variable} has a user name or password in it, which is not sent`);
  }
  const refused = deps.guard.refusal(url);
  if (refused !== null) throw new CannotOpen(`${variable}: ${refused}`);
  return createHttpPost(deps, url);
}

/** How many items a message can carry. Beyond that a channel would refuse the message, or cut it. */
interface ListLimits {
  /** In characters, as the channel writes an item. */
  size: number;
  items: number;
  sizeOf(item: AlertItem): number;
}

const asJson = (item: AlertItem): number => JSON.stringify(item).length;

const limitsOf: Readonly<Record<ChannelSettings["kind"], ListLimits>> = {
  // Two neighbouring sections hold more than 2,900 characters. This size makes 18 of the 50 blocks of a message.
  slack: { size: 25_000, items: maxItems, sizeOf: (item) => itemText(item).length },
  email: { size: 150_000, items: maxItems, sizeOf: asJson },
  // PagerDuty accepts events of up to 512 KiB.
  pagerduty: { size: 100_000, items: maxItems, sizeOf: asJson },
  webhook: { size: 200_000, items: maxItems, sizeOf: asJson },
  // Container logs cut a line at 16 KiB.
  stdout: { size: 15_000, items: maxItems, sizeOf: asJson },
};

/**
 * Splits a list into as many messages as a channel needs to show every item; each has at least one item. A channel that
 * the settings no longer have gets one list. Pure.
 */
export function listParts<T>(
  kind: ChannelSettings["kind"] | undefined,
  all: readonly T[],
  itemOf: (one: T) => AlertItem,
): T[][] {
  if (kind === undefined) return [[...all]];
  const { size, items, sizeOf } = limitsOf[kind];
  const parts: T[][] = [];
  let room = 0;
  for (const one of all) {
    const needed = sizeOf(itemOf(one));
    const last = parts.at(-1);
    if (last === undefined || needed > room || last.length >= items) {
      parts.push([one]);
      room = size - needed;
    } else {
      last.push(one);
      room -= needed;
    }
  }
  return parts;
}
