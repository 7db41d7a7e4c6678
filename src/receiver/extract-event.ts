import { createHash } from "node:crypto";
import { maxExtractLength } from "../inbox/event.ts";
import type { VerifiedEvent } from "../inbox/event.ts";
import { parseEventBody, readEventParts } from "../service/event-envelope.ts";
import type { EnvelopePlaces } from "../service/event-envelope.ts";

export type EventExtracts = Pick<VerifiedEvent, "eventId" | "type" | "apiVersion" | "createdAt">;

/**
 * What the inbox keeps in columns of an event whose signature held. An authentic event is never refused for its
 * content: an id that no column should hold becomes `sha256:<hex of the id as UTF-8>`, no id at all (broken JSON,
 * another type, an empty text) `sha256:<hex of the body>`, and every other part that cannot be kept null. The
 * same bytes always give the same id. Never throws.
 */
export function extractEvent(places: Readonly<EnvelopePlaces>, raw: Buffer): EventExtracts {
  const { id, type, apiVersion, createdAt } = readEventParts(places, parseEventBody(raw));
  return {
    eventId: eventIdOf(id, raw),
    type: isColumnText(type) ? type : null,
    apiVersion: isColumnText(apiVersion) ? apiVersion : null,
    createdAt,
  };
}

function eventIdOf(id: string | null, raw: Buffer): string {
  if (isColumnText(id)) return id;
  const named = id === null || id === "" ? raw : Buffer.from(id, "utf8");
  return `sha256:${createHash("sha256").update(named).digest("hex")}`;
}

/** Text that PostgreSQL takes (no NUL, no lone surrogate) and an index entry has room for. */
function isColumnText(text: string | null): text is string {
  return (
    text !== null &&
    text.length > 0 &&
    text.length <= maxExtractLength &&
    !text.includes("\0") &&
    text.isWellFormed()
  );
}
