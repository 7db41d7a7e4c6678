import type { z } from "zod";
import { missingKeys } from "../service/resources/missing-keys.ts";
import { wireId } from "../service/resources/wire-types.ts";
import { canonicalTimestamp } from "../service/timestamp.ts";
import type { Decoded, Observation } from "./observation.ts";

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
  observation: Observation,
): ({ ok: true } & Readable) | Extract<Decoded, { ok: false }> {
  const { object } = observation;
  const id = wireId.safeParse(Object.hasOwn(object, "id") ? object["id"] : undefined);
  if (!id.success) return unreadable("id", id.error);
  if (missingKeys(required, object).length > 0) {
    return { ok: false, thin: true, id: id.data, states: [] };
  }
  const parsed = required.safeParse(object);
  if (!parsed.success) return unreadable("", parsed.error);
  const updatedAt = versionTime(observation);
  if (updatedAt === null) {
    return { ok: false, thin: false, reason: "updated_at: is no ISO 8601 date-time with offset" };
  }
  return { ok: true, id: id.data, updatedAt };
}

/** Names the first field that cannot be read. Never its value, which may be anything. */
export function unreadable(at: string, { issues: [issue] }: z.ZodError) {
  const path = [...(at === "" ? [] : [at]), ...(issue?.path ?? [])].join(".");
  const reason = `${path}: ${issue?.message ?? "cannot be read"}`;
  return { ok: false, thin: false, reason } as const;
}

/** The object's own `updated_at`; only where it has none, the event's time stands in. */
export function versionTime({
  object,
  fallbackUpdatedAt: fallback,
}: Pick<Observation, "object" | "fallbackUpdatedAt">): string | null {
  const own = Object.hasOwn(object, "updated_at") ? object["updated_at"] : null;
  if (own === null || own === undefined) {
    return fallback === null ? null : canonicalTimestamp(fallback);
  }
  return typeof own === "string" ? canonicalTimestamp(own) : null;
}
