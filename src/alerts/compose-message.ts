import { hash } from "node:crypto";
import type { AlertFact, AlertItem, AlertMessage } from "./message.ts";
import type { Stage } from "./rules/story.ts";
import { headlineText } from "./rules/wording.ts";

/** What a message says of a customer. */
export interface CustomerWords {
  /** The masked address, for the title; null where none is known. */
  person: string | null;
  facts: readonly AlertFact[];
}

export interface Told {
  key: string;
  occurrence: number;
  channel: string;
  stage: Pick<
    Stage,
    "name" | "change" | "at" | "rule" | "severity" | "title" | "headline" | "advice" | "facts"
  >;
  /** Its number, by which people take it. */
  alertId?: number;
  /** The one it is about. */
  customer?: CustomerWords | null;
  links?: AlertMessage["links"];
  items?: readonly AlertItem[];
}

/** What one message to one channel says. Pure. */
export function composeMessage({
  key,
  occurrence,
  channel,
  stage,
  alertId,
  customer,
  links,
  items,
}: Told): AlertMessage {
  const dedupKey = dedupKeyOf(key, occurrence);
  const person = stage.headline === undefined ? null : (customer?.person ?? null);
  const isOver = stage.change === "resolved";
  const taking =
    alertId === undefined || isOver
      ? []
      : [{ label: "Take it", value: `npx tallyhook alerts ack ${alertId}` }];
  return {
    dedupKey,
    idempotencyKey: `${dedupKey}/${stage.name}/${channel}`,
    action: stage.change === "resolved" ? "resolve" : "trigger",
    severity: stage.severity,
    rule: stage.rule,
    stage: stage.name,
    title: stage.headline === undefined ? stage.title : headlineText(stage.headline, person),
    facts: [...stage.facts, ...(customer?.facts ?? []), ...taking],
    advice: stage.advice,
    links: links ?? [],
    at: stage.at.toISOString(),
    ...(items === undefined ? {} : { items }),
  };
}

/** Channels take no key of any length; ids of events may be long. */
const maxKeyLength = 160;

/** The one name of an alert that all its messages bear. Pure. */
const dedupKeyOf = (key: string, occurrence: number): string =>
  `${key.length <= maxKeyLength ? key : `${key.slice(0, 80)}:${hash("sha256", key, "hex").slice(0, 32)}`}#${occurrence}`;
