import { isIP } from "node:net";
import { z } from "zod";
import { settingsObject } from "./settings-object.ts";

/** Secrets are not in the file: it names the variable of the environment that holds one (or `<NAME>_FILE` does). */
const fromVariable = z
  .string()
  .regex(/^ALERT_[A-Z0-9_]{1,80}$/, "should be the name of a variable that begins with ALERT_")
  .refine((name) => name !== "ALERT_SETTINGS" && !name.endsWith("_FILE"), {
    error: "should be the variable's name without _FILE, which is tried as well",
  });

const httpsUrl = z.url({ protocol: /^https?$/ });

export const channelSettings = z.discriminatedUnion("kind", [
  /** An incoming webhook of Slack, or of what understands the same: Mattermost, Rocket.Chat. */
  settingsObject({ kind: z.literal("slack"), urlFrom: fromVariable }),
  /** By the server that SMTP_URL names, from MAIL_FROM. */
  settingsObject({ kind: z.literal("email"), to: z.array(z.email()).min(1).max(50) }),
  /** Events API v2. */
  settingsObject({
    kind: z.literal("pagerduty"),
    routingKeyFrom: fromVariable,
    url: httpsUrl.default("https://events.pagerduty.com/v2/enqueue"),
  }),
  /** Any other receiver; signed as the service's webhooks are (SVC_SIGNATURE_SCHEME). */
  settingsObject({ kind: z.literal("webhook"), urlFrom: fromVariable, secretFrom: fromVariable }),
  /** The worker's standard output. */
  settingsObject({ kind: z.literal("stdout"), format: z.enum(["json", "text"]).default("json") }),
]);

export type ChannelSettings = z.infer<typeof channelSettings>;

const hostName = z
  .string()
  .toLowerCase()
  .refine((text) => isIP(text) > 0 || /^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$/.test(text), {
    error: "should be a host name or an address alone, such as hooks.slack.com",
  });

/** Where alerts may go at all. */
export const destinationSettings = settingsObject({
  /** Reached by https, at addresses of the public internet only. */
  allowedHosts: z
    .array(hostName)
    .default(["hooks.slack.com", "events.pagerduty.com", "events.eu.pagerduty.com"]),
  /** Also reached by http, also at loopback and private addresses; never at metadata or link-local ones. */
  privateHosts: z.array(hostName).default([]),
}).prefault({});

export type DestinationSettings = z.infer<typeof destinationSettings>;
