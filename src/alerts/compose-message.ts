import { hash } from "node:crypto";
import type { AlertFact, AlertItem, AlertMessage } from "./message.ts";
import type { Stage } from "./rules/story.ts";

export interface Told {
  key: string;
  occurrence: number;
  channel: string;
  stage: Pick<Stage, "name" | "change" | "at" | "rule" | "severity" | "title" | "advice" | "facts">;
  /** Of the customer it is about. */
  customer?: readonly AlertFact[];
  links?: AlertMessage["links"];
  items?: readonly AlertItem[];
}

/** What one message to one channel says. Pure. */
export function composeMessage({
  key,
  occurrence,
  channel,
  stage,
  customer,
  links,
  items,
}: Told): AlertMessage {
  const dedupKey = dedupKeyOf(key, occurrence);
  return {
    dedupKey,
    idempotencyKey: `${dedupKey}/${stage.name}/${channel}`,
    action: stage.change === "resolved" ? "resolve" : "trigger",
    severity: stage.severity,
    rule: stage.rule,
    stage: stage.name,
    title: stage.title,
    facts: [...stage.facts, ...(customer ?? [])],
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
