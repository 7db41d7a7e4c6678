import type { IncomingMessage } from "node:http";
import getRawBody from "raw-body";
import type { z } from "zod";
import type { FieldError } from "../../../core/contract/error-envelope.ts";
import { maxImageBytes } from "../../../core/contract/resources/products.ts";
import { ApiError } from "../engine/api-error.ts";

/** The sandbox's own limits; the interface shows none. */
const requestLimits = { maxBytes: 1_048_576, maxDepth: 32 };

/** The JSON object of a request; an empty one when there is no body. Refuses anything else with 400. */
export async function readJsonObject(
  request: IncomingMessage,
  { maxBytes, maxDepth } = requestLimits,
): Promise<Record<string, unknown>> {
  if (request.headers["content-length"] === "0") return {};
  const bytes = await readBytes(request, maxBytes);
  if (bytes.length === 0) return {};
  const type = request.headers["content-type"] ?? "";
  if (!/^application\/(json|[\w.-]+\+json)\s*(;|$)/i.test(type)) {
    throw new ApiError("validation_error", "Send Content-Type: application/json.");
  }
  const value = parse(bytes.toString("utf8"));
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new ApiError("validation_error", "The body must be a JSON object.");
  }
  if (isDeeperThan(value, maxDepth)) {
    throw new ApiError("validation_error", "The body is nested too deeply.");
  }
  return value as Record<string, unknown>;
}

/** All bytes of a body. Refuses more than `limit` with 400. */
export async function readBytes(request: IncomingMessage, limit: number): Promise<Buffer> {
  try {
    return await getRawBody(request, {
      limit,
      length: request.headers["content-length"] ?? null,
    });
  } catch (error) {
    const message = `The body cannot be read, or is larger than ${limit} bytes.`;
    throw Object.assign(new ApiError("validation_error", message), { cause: error });
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ApiError("validation_error", "The body is not valid JSON.");
  }
}

function isDeeperThan(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (depth === 0) return true;
  return Object.values(value).some((inner) => isDeeperThan(inner, depth - 1));
}

/** The allowance for a form's overhead around its file. */
const formBytes = 65_536;

/**
 * The file of an upload: the first of a `multipart/form-data` form, or the whole body. The interface does not show how
 * the service takes it.
 */
export async function readUpload(request: IncomingMessage): Promise<Buffer> {
  const type = request.headers["content-type"] ?? "";
  const body = await readBytes(request, maxImageBytes + formBytes);
  if (!/^multipart\/form-data\b/i.test(type)) return body;
  const file = await firstFile(body, type);
  if (file === null) throw new ApiError("required_field", "The form has no file.", "image");
  return Buffer.from(await file.arrayBuffer());
}

/** Null when the form has no file, or is malformed. */
async function firstFile(body: Buffer, type: string): Promise<Blob | null> {
  try {
    // Deprecated for streamed bodies; this one is complete, and its size is bounded.
    // oxlint-disable-next-line typescript/no-deprecated
    const form = await new Response(body, { headers: { "content-type": type } }).formData();
    return [...form.values()].find((value) => typeof value !== "string") ?? null;
  } catch {
    return null;
  }
}

/**
 * The value as the schema parses it. One invalid field gives its own code (`required_field`, `invalid_value`, …),
 * several give `validation_error`. Either way `field_errors` lists every invalid field.
 */
export function validate<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const fields = parsed.error.issues.map((issue) => fieldError(issue, value));
  const [first] = fields;
  const isOneField = new Set(fields.map(({ field }) => field)).size === 1;
  const code = isOneField && first !== undefined ? first.code : "validation_error";
  const message = fields.map((field) => `${field.field}: ${field.message}`).join("; ");
  throw new ApiError(code, message, first?.field ?? null, fields);
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
