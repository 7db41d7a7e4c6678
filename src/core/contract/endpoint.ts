import { z } from "zod";

/**
 * How an endpoint treats `X-SVC-Idempotency-Key`. `required` refuses a request without it, `none` ignores it. The
 * others honour it when it is sent; they differ in how the interface mentions it (`sent`: in its examples only).
 */
export type Idempotency = "required" | "recommended" | "sent" | "optional" | "none";

/** Permissions of an API key. The interface names those of team_members and coupons; the others are assumed. */
export type Permission =
  `${"customers" | "products" | "plans" | "orders" | "subscriptions" | "transactions" | "coupons" | "team_members" | "webhook_endpoints" | "account"}:${"read" | "write"}`;

export type EndpointMethod = "GET" | "POST" | "PATCH" | "DELETE";

/**
 * One endpoint of the service, declared once for both sides: the sandbox mounts it, and the client takes its types from
 * it. Parameters and bodies are those that a request may hold; `answer` is the body of the 2xx answer.
 */
export interface Endpoint<
  Path extends z.ZodType = z.ZodType,
  Query extends z.ZodType = z.ZodType,
  Body extends z.ZodType = z.ZodType,
  Answer extends z.ZodType = z.ZodType,
  Verb extends EndpointMethod = EndpointMethod,
> {
  name: string;
  method: Verb;
  /** Relative to `/v1`, with `{name}` for a path parameter. */
  path: `/${string}`;
  summary: string;
  permission: Permission;
  idempotency: Idempotency;
  params: Path;
  query: Query;
  body: Body;
  /** Encoding of the request body; JSON by default. `image`: multipart/form-data with one file, or the bytes alone. */
  encoding?: "json" | "image";
  status: 200 | 201;
  answer: Answer;
  /** Codes beyond those that every endpoint can answer. */
  errors: readonly string[];
}

/** An endpoint as it is declared, with defaults. One that writes declares how it treats an idempotency key. */
type Declared<E extends Endpoint> = Omit<E, keyof typeof defaults> &
  Partial<Pick<E, keyof typeof defaults>> &
  (E["method"] extends "GET" ? unknown : Pick<E, "idempotency">);

export function defineEndpoint<
  Answer extends z.ZodType,
  const Verb extends EndpointMethod,
  Path extends z.ZodType = typeof noParams,
  Query extends z.ZodType = typeof noQuery,
  Body extends z.ZodType = typeof noBody,
>(endpoint: Declared<Endpoint<Path, Query, Body, Answer, Verb>>): Endpoint<Path, Query, Body, Answer, Verb> {
  return { ...defaults, ...endpoint };
}

export type ReadEndpoint = Endpoint<z.ZodType, z.ZodType, z.ZodType, z.ZodType, "GET">;
export type ListEndpoint = Endpoint<
  z.ZodType,
  z.ZodObject,
  z.ZodType,
  z.ZodType<{ data: object[]; has_more: boolean }>,
  "GET"
>;
export type ReadById = Endpoint<typeof idParam, z.ZodType, z.ZodType, z.ZodType, "GET">;
export type WriteEndpoint = Endpoint<z.ZodType, z.ZodType, z.ZodType, z.ZodType, Exclude<EndpointMethod, "GET">>;

type CalledParams<E extends Endpoint> =
  Record<string, never> extends z.input<E["params"]> ? { params?: undefined } : { params: z.input<E["params"]> };

type CalledBody<E extends Endpoint> =
  unknown extends z.input<E["body"]> ? { body?: Record<string, never> } : { body: z.input<E["body"]> };

/** A call to an endpoint as the caller sends it, with parameters as text. */
export type ReadCall<E extends Endpoint> = CalledParams<E> & { query?: z.input<E["query"]> };
export type WriteCall<E extends Endpoint> = CalledParams<E> & CalledBody<E>;

/** The fields that the interface names, without the unknown ones that a loose schema lets pass. */
type Named<T> = keyof { [Field in keyof T as string extends Field ? never : Field]: T[Field] };

/** An answer before it is checked: the fields that its schema names, of any type. */
export type DocumentedFields<Answer> = { readonly [Field in Named<Answer>]?: unknown };

export type AnswerOf<E extends Endpoint> = DocumentedFields<z.output<E["answer"]>>;
export type ItemOf<E extends ListEndpoint> = DocumentedFields<z.output<E["answer"]>["data"][number]> & {
  readonly id: string;
};

/** A request after its endpoint has parsed it. */
export interface EndpointRequest<E extends Endpoint> {
  params: z.output<E["params"]>;
  query: z.output<E["query"]>;
  body: z.output<E["body"]>;
}

/** Path parameters are opaque: an id that is not a UUID is simply unknown (404). */
export const idParam = z.object({ id: z.string() });
export const noParams = z.object({});
export const noQuery = z.object({});

/** An endpoint without a body ignores the body that is sent. */
export const noBody = z.unknown().transform(() => undefined);

/** Defaults of an endpoint: it reads, without parameters and body, and answers 200. */
const defaults = {
  idempotency: "none",
  params: noParams,
  query: noQuery,
  body: noBody,
  status: 200,
  errors: [],
} as const;

export const deletion = z.object({
  id: z.string(),
  deleted: z.literal(true),
  message: z.string(),
});

/** Error codes of every endpoint that charges a stored card. */
export const chargeErrors = ["customer_not_configured", "merchant_not_configured", "replacement_required"] as const;

/**
 * The version of the interface that this program was written for. Every request sends it, so that the program reads the
 * same fields when the account is pinned to another version. The interface names no version: the date is assumed.
 */
export const serviceVersion = "2025-09-01";
