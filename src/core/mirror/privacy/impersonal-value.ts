import { redacted } from "../../../platform/redaction.ts";
import { type MirrorResource, allColumns } from "../resources/resource.ts";
import { withoutPersonalField } from "./personal-data.ts";

/**
 * A field's value as shown without the right to personal data; undefined where it is hidden. A column's definition says
 * whether it is personal. Of all other fields, also unknown ones, only values that survive an erasure are shown.
 */
export function impersonalValue(resource: MirrorResource, field: string, value: unknown): unknown {
  const columns = allColumns(resource);
  const holds = Object.hasOwn(columns, field) ? columns[field]?.holds : undefined;
  if (holds !== undefined) return holds === "personal" ? undefined : value;
  const kept = withoutPersonalField(field, value);
  const isNothing = kept === undefined || kept === redacted || JSON.stringify(kept) === "{}";
  return isNothing ? undefined : kept;
}
