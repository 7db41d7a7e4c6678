import { redacted } from "../../../platform/redaction.ts";
import { type MirrorResource, allColumns } from "../resources/resource.ts";
import { withoutPersonalField } from "./personal-data.ts";

/**
 * A field's value as those may see it who may see no personal data; undefined where they may not. A column says of
 * itself whether it is personal. Of all other fields, also those that nobody knows yet, only what survives an erasure
 * is shown.
 */
export function impersonalValue(resource: MirrorResource, field: string, value: unknown): unknown {
  const columns = allColumns(resource);
  const holds = Object.hasOwn(columns, field) ? columns[field]?.holds : undefined;
  if (holds !== undefined) return holds === "personal" ? undefined : value;
  const kept = withoutPersonalField(field, value);
  const isNothing = kept === undefined || kept === redacted || JSON.stringify(kept) === "{}";
  return isNothing ? undefined : kept;
}
