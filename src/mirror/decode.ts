import type { z } from "zod";
import { missingKeys } from "../service/resources/missing-keys.ts";
import { wireId } from "../service/resources/wire-types.ts";
import { canonicalTimestamp } from "../service/timestamp.ts";
import { contentHash } from "./canonical.ts";
import type { JsonObject } from "./canonical.ts";
import type { Column, Decoded, GroupState, Observation } from "./observation.ts";
import { versionOf } from "./version.ts";

/** What is known of an object once its id, its version and its money were read. */
export interface Readable {
  id: string;
  updatedAt: string;
}

/**
 * Reads what a state cannot do without. `required` holds the fields that decide: an object without one of them
 * is thin, with an unreadable one it is dead. All other fields are kept as they come.
 */
export function readObject(
  required: z.ZodObject,
  { object, fallbackUpdatedAt }: Observation,
): ({ ok: true } & Readable) | Extract<Decoded, { ok: false }> {
  const id = wireId.safeParse(Object.hasOwn(object, "id") ? object["id"] : undefined);
  if (!id.success) return { ok: false, thin: false, reason: "id: cannot be read" };
  if (missingKeys(required, object).length > 0) return { ok: false, thin: true, id: id.data };
  const parsed = required.safeParse(object);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const reason = `${issue?.path.join(".") ?? "object"}: ${issue?.message ?? "cannot be read"}`;
    return { ok: false, thin: false, reason };
  }
  const updatedAt = versionTime(object, fallbackUpdatedAt);
  if (updatedAt === null) return { ok: false, thin: false, reason: "updated_at: cannot be read" };
  return { ok: true, id: id.data, updatedAt };
}

/** The object's own `updated_at`; only where it has none, the event's time stands in. */
function versionTime(
  object: Readonly<Record<string, unknown>>,
  fallback: string | null,
): string | null {
  const own = Object.hasOwn(object, "updated_at") ? object["updated_at"] : null;
  if (own === null || own === undefined) return fallback;
  return typeof own === "string" ? canonicalTimestamp(own) : null;
}

/** Puts a group's content and columns together with the version that orders it. */
export function groupState(
  { observedAt, cause }: Pick<Observation, "observedAt" | "cause">,
  group: { group: string; id: string; updatedAt: string; rank: number; content: JsonObject },
  columns: Readonly<Record<string, Column>>,
): GroupState {
  const hash = contentHash(group.content);
  const version = versionOf({ updatedAt: group.updatedAt, observedAt, rank: group.rank, hash });
  return { ...group, version, observedAt, hash, columns, cause };
}
