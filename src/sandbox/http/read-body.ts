import type { IncomingMessage } from "node:http";

import getRawBody from "raw-body";
import { Refusal } from "../refusal.ts";

/** Limits of the service are not shown. */
const requestLimits = { maxBytes: 1_048_576, maxDepth: 32 };

/**
 * The JSON object of a request; an empty one when there is no body. Anything else is refused with 400
 * (statements 3, 4, 5, 22).
 */
export async function readJsonObject(
  request: IncomingMessage,
  { maxBytes, maxDepth } = requestLimits,
): Promise<Record<string, unknown>> {
  if (request.headers["content-length"] === "0") return {};
  const bytes = await readBytes(request, maxBytes);
  if (bytes.length === 0) return {};
  const type = request.headers["content-type"] ?? "";
  if (!/^application\/(json|[\w.-]+\+json)\s*(;|$)/i.test(type)) {
    throw new Refusal("validation_error", "Send Content-Type: application/json.");
  }
  const value = parse(bytes.toString("utf8"));
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Refusal("validation_error", "The body must be a JSON object.");
  }
  if (isDeeperThan(value, maxDepth)) {
    throw new Refusal("validation_error", "The body is nested too deeply.");
  }
  return value as Record<string, unknown>;
}

/** All bytes of a body; more than `limit` are refused with 400. */
export async function readBytes(request: IncomingMessage, limit: number): Promise<Buffer> {
  try {
    return await getRawBody(request, {
      limit,
      length: request.headers["content-length"] ?? null,
    });
  } catch (error) {
    const message = `The body cannot be read, or is larger than ${limit} bytes.`;
    throw Object.assign(new Refusal("validation_error", message), { cause: error });
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Refusal("validation_error", "The body is not valid JSON.");
  }
}

function isDeeperThan(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (depth === 0) return true;
  return Object.values(value).some((inner) => isDeeperThan(inner, depth - 1));
}
