import { isIP } from "node:net";
import { z } from "zod";
import { listOf, ofKind, oneOf, settingsObject, should, shouldHidden } from "./setting-words.ts";

/** Secrets are not in the file: it names the variable of the environment that holds one (or `<NAME>_FILE` does). */
const variableWords = shouldHidden(
  "the name of an environment variable that begins with ALERT_; the secret itself does not stand in this file",
);
const fromVariable = z
  .string(variableWords)
  .regex(/^ALERT_[A-Z0-9_]{1,80}$/, variableWords)
  .refine((name) => name !== "ALERT_SETTINGS" && !name.endsWith("_FILE"), {
    error: "should be the variable's name without _FILE, which is tried as well",
  });

const httpsUrl = z.url({
  protocol: /^https?$/,
  ...shouldHidden("an address such as https://events.pagerduty.com/v2/enqueue"),
});
const mailAddress = z.email(should("an e-mail address alone, such as finance@example.com"));

export const channelSettings = ofKind(
  ["slack", "email", "pagerduty", "webhook", "stdout"],
  [
    /** An incoming webhook of Slack, or of what understands the same: Mattermost, Rocket.Chat. */
    settingsObject({ kind: z.literal("slack"), urlFrom: fromVariable }),
    /** By the server that SMTP_URL names, from MAIL_FROM. */
    settingsObject({
      kind: z.literal("email"),
      to: listOf(mailAddress, '["finance@example.com"]').max(
        50,
        should("a list of at most 50 addresses"),
      ),
    }),
    /** Events API v2. */
    settingsObject({
      kind: z.literal("pagerduty"),
      routingKeyFrom: fromVariable,
      url: httpsUrl.default("https://events.pagerduty.com/v2/enqueue"),
    }),
    /** Any other receiver; signed as the service's webhooks are (SVC_SIGNATURE_SCHEME). */
    settingsObject({ kind: z.literal("webhook"), urlFrom: fromVariable, secretFrom: fromVariable }),
    /** The worker's standard output. */
    settingsObject({ kind: z.literal("stdout"), format: oneOf(["json", "text"]).default("json") }),
  ],
);

export type ChannelSettings = z.infer<typeof channelSettings>;

const hostWords = should(
  "a host name or an address alone, without scheme, port and path, such as hooks.slack.com",
);
const hostName = z
  .string(hostWords)
  .toLowerCase()
  .refine((text) => isIP(text) > 0 || /^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$/.test(text), hostWords);
const hostNames = z.array(hostName, should('a list such as ["hooks.slack.com"]'));

/** Where alerts may go at all. */
export const destinationSettings = settingsObject({
  /** Reached by https, at addresses of the public internet only. */
  allowedHosts: hostNames.default([
    "hooks.slack.com",
    "events.pagerduty.com",
    "events.eu.pagerduty.com",
  ]),
  /** Also reached by http, also at loopback and private addresses; never at metadata or link-local ones. */
  privateHosts: hostNames.default([]),
}).prefault({});

export type DestinationSettings = z.infer<typeof destinationSettings>;
