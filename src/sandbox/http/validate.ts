import type { z } from "zod";

import type { FieldError } from "../../service/error-envelope.ts";
import { Refusal } from "../refusal.ts";

/**
 * The value as the schema understands it. One field wrong: its own code (`required_field`, `invalid_value`, …); several:
 * `validation_error`. Either way every field is in `field_errors` (statements 48 to 51).
 */
export function validate<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const fields = parsed.error.issues.map((issue) => fieldError(issue, value));
  const [first] = fields;
  const isOneField = new Set(fields.map(({ field }) => field)).size === 1;
  const code = isOneField && first !== undefined ? first.code : "validation_error";
  const message = fields.map((field) => `${field.field}: ${field.message}`).join("; ");
  throw new Refusal(code, message, first?.field ?? null, fields);
}

function fieldError(issue: z.core.$ZodIssue, value: unknown): FieldError {
  const field = issue.path.map(String).join(".");
  const code = codeOf(issue, value);
  return { field, code, message: code === "required_field" ? "is required" : issue.message };
}

function codeOf(issue: z.core.$ZodIssue, value: unknown): string {
  if (issue.code === "invalid_type" || issue.code === "invalid_value") {
    return isAbsent(issue.path, value) ? "required_field" : "invalid_value";
  }
  if (issue.code === "invalid_union" && isAbsent(issue.path, value)) return "required_field";
  if (issue.code === "invalid_format") return "invalid_format";
  if (issue.code === "custom") {
    const code: unknown = issue.params?.["code"];
    return typeof code === "string" ? code : "invalid_value";
  }
  return "invalid_value";
}

function isAbsent(path: readonly PropertyKey[], value: unknown): boolean {
  let inner = value;
  for (const key of path) {
    if (typeof inner !== "object" || inner === null || !Object.hasOwn(inner, key)) return true;
    inner = (inner as Record<PropertyKey, unknown>)[key];
  }
  return inner === undefined;
}
