import { z } from "zod";

/**
 * How an endpoint treats `X-SVC-Idempotency-Key` (spec, Endpoints). All but `none` honour the header when it is sent; `required`
 * refuses a request without it.
 */
export type Idempotency = "required" | "recommended" | "sent" | "optional" | "none";

/** What a key may do. The spec names team_members and coupons; the others are assumed. */
export type Permission =
  `${"customers" | "products" | "plans" | "orders" | "subscriptions" | "transactions" | "coupons" | "team_members" | "webhook_endpoints" | "account"}:${"read" | "write"}`;

export type Method = "GET" | "POST" | "PATCH" | "DELETE";

/**
 * One endpoint of the service, declared once for both sides: the sandbox mounts it, the client is typed by it.
 * Parameters and bodies are what a request may hold; `answer` is the body of the 2xx answer.
 */
export interface Endpoint<
  Path extends z.ZodType = z.ZodType,
  Query extends z.ZodType = z.ZodType,
  Body extends z.ZodType = z.ZodType,
  Answer extends z.ZodType = z.ZodType,
> {
  name: string;
  method: Method;
  /** Relative to `/v1`, with `{name}` for a path parameter. */
  path: `/${string}`;
  summary: string;
  permission: Permission;
  idempotency: Idempotency;
  params: Path;
  query: Query;
  body: Body;
  /** How a request carries its body; JSON when left out. `image`: multipart/form-data with one file, or the bytes alone. */
  encoding?: "json" | "image";
  status: 200 | 201;
  answer: Answer;
  /** Codes beyond those that every endpoint can answer. */
  errors: readonly string[];
}

export function defineEndpoint<
  Path extends z.ZodType,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Answer extends z.ZodType,
>(endpoint: Endpoint<Path, Query, Body, Answer>): Endpoint<Path, Query, Body, Answer> {
  return endpoint;
}

/** A request as its endpoint understands it. */
export interface EndpointRequest<E extends Endpoint> {
  params: z.output<E["params"]>;
  query: z.output<E["query"]>;
  body: z.output<E["body"]>;
}

/** Path parameters are opaque: an id that is no UUID is simply unknown (404). */
export const idParam = z.object({ id: z.string() });
export const noParams = z.object({});
export const noQuery = z.object({});

/** Endpoints without a body read none, whatever is sent. */
export const noBody = z.unknown().transform(() => undefined);

export const deletion = z.object({
  id: z.string(),
  deleted: z.literal(true),
  message: z.string(),
});

/** Codes of everything that charges a stored card. */
export const chargeErrors = [
  "customer_not_configured",
  "merchant_not_configured",
  "replacement_required",
] as const;

/**
 * The version of the interface that this program was written for. Sent with every request, so that an account that is
 * pinned to another version does not change what the program reads. The interface names no version: the date is assumed.
 */
export const serviceVersion = "2025-09-01";
