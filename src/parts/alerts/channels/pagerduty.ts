import { z } from "zod";
import type { SentMessage } from "../message.ts";
import { oneLine } from "../../../platform/readable-text.ts";
import { type Channel, digestOf, headerKey, maxItems, safeLink, titleOf } from "./channel.ts";
import { settingsObject, shouldHidden } from "../../../platform/setting-schemas.ts";
import { fromVariable } from "../setting-schemas.ts";
import { asJson, channelKind, httpTo, secret } from "./channel-kind.ts";
import type { HttpPost } from "./http-post.ts";

const httpsUrl = z.url({
  protocol: /^https?$/,
  ...shouldHidden("an address such as https://events.pagerduty.com/v2/enqueue"),
});

/**
 * PagerDuty's Events API v2. An alert is one incident, identified by its `dedup_key`: repeats and later transitions
 * join it, and the resolution ends it.
 *
 * Source: PagerDuty, "Send an alert event", "Events API v2 overview" (severities, lengths).
 */
export const pagerDuty = channelKind({
  settings: settingsObject({
    kind: z.literal("pagerduty"),
    routingKeyFrom: fromVariable,
    url: httpsUrl.default("https://events.pagerduty.com/v2/enqueue"),
  }),
  // PagerDuty accepts events of up to 512 KiB.
  list: { size: 100_000, sizeOf: asJson },
  keepsIncidents: true,
  open: ({ url, routingKeyFrom }, deps) =>
    createPagerDutyChannel(httpTo(url, "url", deps), secret(routingKeyFrom, deps)),
});

function createPagerDutyChannel(http: HttpPost, routingKey: string): Channel<SentMessage> {
  return {
    kind: "pagerduty",
    host: http.host,
    send: (message, { signal }) =>
      http.post(
        JSON.stringify({ routing_key: routingKey, ...pagerDutyEvent(message) }),
        { "idempotency-key": headerKey(message) },
        signal,
      ),
    close: () => http.close(),
  };
}

const maxDedupKey = 255;

/** The event without the routing key. */
export function pagerDutyEvent(message: SentMessage): object {
  const { action, dedupKey, severity, rule, at } = message;
  const event = { event_action: action, dedup_key: dedupKeyOf(dedupKey) };
  if (action !== "trigger") return event;
  return {
    ...event,
    client: "Tallyhook",
    payload: {
      summary: titleOf(message),
      source: "tallyhook",
      severity,
      timestamp: at,
      class: rule,
      custom_details: detailsOf(message),
    },
    links: [...message.links, { label: "Runbook", url: message.runbook }].flatMap(({ label, url }) => {
      const href = safeLink(url);
      return href === null ? [] : [{ href, text: oneLine(label, 100) }];
    }),
  };
}

const dedupKeyOf = (key: string): string => (key.length <= maxDedupKey ? key : `sha256:${digestOf(key, 64)}`);

function detailsOf({ facts, advice, stage, runbook, items = [] }: SentMessage): object {
  const told = facts.map(({ label, value }) => [oneLine(label, 80), oneLine(value, 1_000)] as const);
  return {
    ...Object.fromEntries(told),
    ...(advice === "" ? {} : { "What to do": oneLine(advice, 2_000) }),
    Runbook: oneLine(runbook, 2_000),
    Stage: oneLine(stage, 100),
    ...(items.length === 0
      ? {}
      : {
          Items: items
            .slice(0, maxItems)
            .map((item) => [oneLine(item.title, 200), ...item.facts.slice(0, 5).map(factText)].join(", ")),
          "Items in all": items.length,
        }),
  };
}

const factText = ({ label, value }: { label: string; value: string }): string =>
  `${oneLine(label, 60)}: ${oneLine(value, 200)}`;
