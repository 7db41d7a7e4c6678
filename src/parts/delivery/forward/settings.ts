import { z } from "zod";
import { eventTypes } from "../../../core/contract/event-envelope.ts";
import { canonicalTimestamp } from "../../../core/contract/timestamp.ts";
import { changeKinds } from "../../../core/mirror/changes/kinds.ts";
import { bareHost, createDestinationGuard } from "../../../platform/http/destination-guard.ts";
import { nearestName } from "../../../platform/nearest-name.ts";
import {
  byName,
  expected,
  hostNames,
  listOf,
  ofKind,
  oneOf,
  secretVariable,
  settingsObject,
  shouldHidden,
  wholeNumber,
  yesOrNo,
} from "../../../platform/setting-schemas.ts";
import { type Problem, readSettingsFile } from "../../../platform/settings-file.ts";
import type { ReadFile } from "../../../platform/settings.ts";

const urlWords = shouldHidden("an address such as https://crm.example.com/webhooks, without user name and password");
const address = z.string(urlWords).refine((text) => isAddress(text), urlWords);

function isAddress(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return /^https?:$/.test(protocol) && username + password === "";
}

const startWords = expected('"now", "beginning" or a time with its offset, such as 2026-03-01T12:00:00Z');
const start = z
  .string(startWords)
  .refine((text) => text === "now" || text === "beginning" || canonicalTimestamp(text) !== null, startWords);

/** Settings of every destination. */
const common = {
  /** The URL. The host must be on the public internet and reached by https, unless it is in `privateHosts`. */
  url: address,
  /**
   * The variable with the secret, in the form of Standard Webhooks: `whsec_` and base64. Several are separated by
   * commas, the newest first.
   */
  secretFrom: secretVariable("FORWARD_", "FORWARD_SETTINGS_FILE"),
  /** The start of a new destination. */
  from: start.default("now"),
  concurrency: wholeNumber(1, 50).default(5),
  timeoutSeconds: wholeNumber(1, 30).default(15),
};

const changes = settingsObject({
  send: z.literal("changes"),
  ...common,
  /** Left out: all. */
  kinds: listOf(oneOf(changeKinds), '["order.refunded"]').optional(),
  /** Whether imported changes are included. */
  includeImport: yesOrNo.default(false),
  /** The object as it was after the change, which may hold personal data. */
  withObject: yesOrNo.default(true),
});

const eventType = z.string(expected("the type of an event, such as order.succeeded")).superRefine((text, context) => {
  if (eventTypes.some((known) => known === text)) return;
  // The interface does not list all types, so that any other is possible, unless it is nearly a known one.
  const near = nearestName(text, eventTypes, { atMost: 2 });
  if (near === null && /^[\x21-\x7e]{1,255}$/.test(text)) return;
  const hint = near === null ? "" : `. Did you mean "${near}"?`;
  const message = `${JSON.stringify(text.slice(0, 80))} is no type of an event${hint}`;
  context.addIssue({ code: "custom", message });
});

const webhooks = settingsObject({
  send: z.literal("webhooks"),
  ...common,
  /** Left out: all. */
  types: listOf(eventType, '["order.succeeded"]').optional(),
});

const destinationName = {
  pattern: /^[a-z][a-z0-9-]{0,39}$/,
  should: "at most 40 lower-case letters, digits and -, a letter first, such as crm",
};

const schema = settingsObject({
  destinations: byName(
    destinationName,
    ofKind("send", ["changes", "webhooks"], [changes, webhooks], '{ "send": "changes", "url": "https://…", … }'),
    '{ "crm": { "send": "changes", "url": "https://…", "secretFrom": "FORWARD_CRM" } }',
  ),
  /** May also be reached by http and at loopback and private addresses. */
  privateHosts: hostNames("crm.internal").default([]),
});

export type ForwardSettings = z.infer<typeof schema>;
export type DestinationSettings = ForwardSettings["destinations"][string];

/** The guard for these destinations: each host that a destination names, and no other. */
export const guardFor = ({ destinations, privateHosts }: ForwardSettings) =>
  createDestinationGuard({
    allowedHosts: Object.values(destinations).map(({ url }) => bareHost(new URL(url).hostname)),
    privateHosts,
    listsUnder: "",
  });

/**
 * Reads the settings of forwarding. Throws one `ConfigurationError` that names every wrong setting with its place and
 * line.
 */
export const loadForwardSettings = (file: string, readFile?: ReadFile): ForwardSettings =>
  readSettingsFile({ file, variable: "FORWARD_SETTINGS_FILE", readFile }, schema, refusedHosts);

function refusedHosts(settings: ForwardSettings): Problem[] {
  const guard = guardFor(settings);
  return Object.entries(settings.destinations).flatMap(([name, { url }]) => {
    const says = guard.refusal(new URL(url));
    return says === null ? [] : [{ path: ["destinations", name, "url"], says }];
  });
}
