import { z } from "zod";
import {
  type ZodOpenApiObject,
  type ZodOpenApiOperationObject,
  type ZodOpenApiResponseObject,
  createDocument,
} from "zod-openapi";
import type { Endpoint } from "../../../core/contract/endpoint.ts";
import { errorEnvelopeSchema } from "../../../core/contract/error-envelope.ts";
import { eventEnvelopeSchema } from "../../../core/contract/event-envelope.ts";
import { accountSchema } from "../../../core/contract/resources/account.ts";
import { appliedCouponSchema, couponCodeSchema, couponSchema } from "../../../core/contract/resources/coupons.ts";
import { customerSchema, shippingAddressSchema } from "../../../core/contract/resources/customers.ts";
import { orderSchema, orderTransactionSchema } from "../../../core/contract/resources/orders.ts";
import { paymentMethodSchema, paymentMethodSummarySchema } from "../../../core/contract/resources/payment-methods.ts";
import { billingCycleSchema, planSchema } from "../../../core/contract/resources/plans.ts";
import { productImageSchema, productSchema } from "../../../core/contract/resources/products.ts";
import { planSummarySchema, subscriptionSchema } from "../../../core/contract/resources/subscriptions.ts";
import { roleSchema, teamMemberSchema } from "../../../core/contract/resources/team-members.ts";
import { transactionSchema } from "../../../core/contract/resources/transactions.ts";
import { webhookEndpointSchema } from "../../../core/contract/resources/webhook-endpoints.ts";
import { statusOf } from "../engine/api-error.ts";
import { latestVersion } from "../engine/api-versions.ts";
import { knownEventTypes } from "../engine/event-log.ts";
import { defaultSettings } from "../engine/settings.ts";
import { exampleBodies } from "./examples.ts";

/** The names of the resources in the document. */
const schemas = {
  Account: accountSchema,
  AppliedCoupon: appliedCouponSchema,
  BillingCycle: billingCycleSchema,
  Coupon: couponSchema,
  CouponCode: couponCodeSchema,
  Customer: customerSchema,
  Error: errorEnvelopeSchema,
  Event: eventEnvelopeSchema,
  Order: orderSchema,
  OrderTransaction: orderTransactionSchema,
  PaymentMethod: paymentMethodSchema,
  PaymentMethodSummary: paymentMethodSummarySchema,
  Plan: planSchema,
  PlanSummary: planSummarySchema,
  Product: productSchema,
  ProductImage: productImageSchema,
  Role: roleSchema,
  ShippingAddress: shippingAddressSchema,
  Subscription: subscriptionSchema,
  TeamMember: teamMemberSchema,
  Transaction: transactionSchema,
  WebhookEndpoint: webhookEndpointSchema,
};

const commonHeaders = z.object({
  "SVC-Version": z.string().optional().describe("YYYY-MM-DD; overrides the account's version once"),
});

/** The key that the documentation shows. The pages send a fresh one in its place. */
export const exampleIdempotencyKey = "3f2b8c1e-0000-4000-8000-000000000000";

const idempotencyKey = z
  .uuidv4()
  .describe("A repeat within 24 hours gets the first answer. This page sends a fresh key with each call.")
  .meta({ example: exampleIdempotencyKey });

const requestIdHeader = z.object({
  "X-Request-Id": z.string().describe("The same as error.request_id. Give it to the service's support."),
});

/** Sent while rate limits are on, for the limit with less left. */
const rateHeaders = z.object({
  "RateLimit-Limit": z.int().optional().describe("Requests per window"),
  "RateLimit-Remaining": z.int().optional().describe("Requests left in this window"),
  "RateLimit-Reset": z.int().optional().describe("Seconds until the next window"),
});

const doneHeaders = requestIdHeader.extend(rateHeaders.shape).extend({
  "SVC-Version": z.string().describe("The version of this answer"),
});

const limitedHeaders = requestIdHeader.extend(rateHeaders.shape).extend({
  "Retry-After": z.string().describe("How long to wait: seconds, or an HTTP date"),
});

/** The errors that every endpoint can answer. */
const everywhere = [
  "validation_error",
  "required_field",
  "invalid_value",
  "invalid_format",
  "invalid_api_version",
  "api_version_sunset",
  "missing_api_key",
  "invalid_api_key",
  "invalid_api_key_format",
  "expired_api_key",
  "revoked_api_key",
  "insufficient_permissions",
  "ip_not_allowed",
  "environment_mismatch",
  "rate_limit_exceeded",
  "global_rate_limit_exceeded",
  "internal_error",
  "service_unavailable",
];

const withKey = ["invalid_idempotency_key", "request_in_progress", "idempotency_key_conflict"];

/** Every error code that an endpoint can answer, each once. */
export function errorCodesOf({ method, idempotency, errors }: Endpoint): string[] {
  return [
    ...new Set([
      ...everywhere,
      ...(method === "GET" ? [] : ["contains_html"]),
      ...(idempotency === "none" ? [] : withKey),
      ...(idempotency === "required" ? ["missing_idempotency_key"] : []),
      ...errors,
    ]),
  ];
}

/**
 * The OpenAPI 3.1 document of the service, made from the declarations that the sandbox mounts and the client is typed
 * by. `answers` are examples by the endpoint's name.
 */
export function openApiDocument(
  endpoints: readonly Endpoint[],
  answers: Readonly<Record<string, unknown>> = {},
): ReturnType<typeof createDocument> {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {};
  for (const endpoint of endpoints) {
    const path = (paths[endpoint.path] ??= {});
    path[endpoint.method.toLowerCase()] = operation(endpoint, answers[endpoint.name]);
  }
  return createDocument(
    {
      openapi: "3.1.0",
      info: {
        title: "The commerce service, as the sandbox simulates it",
        version: latestVersion.version,
        description: "Money is in cents, times are ISO 8601, ids are UUIDs, lists are paged by cursor.",
      },
      servers: [{ url: "/v1" }],
      tags: [...new Set(endpoints.map(tagOf))].map((name) => ({ name })),
      security: [{ apiKey: [] }],
      components: { schemas, securitySchemes: { apiKey: { type: "http", scheme: "bearer" } } },
      paths,
      webhooks: webhooks(),
    },
    {
      override({ zodSchema, jsonSchema }) {
        // A value checked by a function has no JSON Schema: it is shown as any object.
        if (zodSchema._zod.def.type === "custom") jsonSchema.type ??= "object";
        // An enum that the service may extend. Readers accept new values; the sandbox sends these.
        const { examples } = jsonSchema;
        if (jsonSchema.type === "string" && Array.isArray(examples)) {
          jsonSchema.enum = examples as string[];
          delete jsonSchema.examples;
        }
      },
    },
  );
}

const tagOf = ({ path }: Endpoint): string => path.split("/")[1] ?? "";

function operation(endpoint: Endpoint, example: unknown): ZodOpenApiOperationObject {
  const { name, summary, permission, status, answer } = endpoint;
  const json = { schema: answer, ...(example === undefined ? {} : { example }) };
  return {
    operationId: name,
    summary,
    description: `Permission: \`${permission}\`. ${idempotencyNote(endpoint)}`,
    tags: [tagOf(endpoint)],
    requestParams: {
      path: asObject(endpoint.params),
      query: asObject(endpoint.query),
      header: headersOf(endpoint),
    },
    ...bodyOf(endpoint),
    responses: {
      [status]: {
        description: "Success",
        headers: doneHeaders,
        content: { "application/json": json },
      },
      ...errorResponses(endpoint),
    },
  };
}

function idempotencyNote({ idempotency }: Endpoint): string {
  if (idempotency === "none") return "Takes no idempotency key.";
  return `Idempotency key: ${idempotency}.`;
}

function headersOf({ idempotency }: Endpoint) {
  if (idempotency === "none") return commonHeaders;
  const isRequired = idempotency === "required";
  return commonHeaders.extend({
    "X-SVC-Idempotency-Key": isRequired ? idempotencyKey : idempotencyKey.optional(),
  });
}

function bodyOf({ name, method, encoding, body }: Endpoint): Pick<ZodOpenApiOperationObject, "requestBody"> {
  const takesNone = method === "GET" || body.safeParse(undefined).data === undefined;
  if (takesNone && !(body instanceof z.ZodObject)) return {};
  const required = !body.safeParse({}).success;
  const type = encoding === "image" ? "multipart/form-data" : "application/json";
  const example = Object.hasOwn(exampleBodies, name) ? { example: exampleBodies[name] } : {};
  return { requestBody: { required, content: { [type]: { schema: body, ...example } } } };
}

/** One response for each status, with the codes that come under it. */
function errorResponses(endpoint: Endpoint): Record<string, ZodOpenApiResponseObject> {
  const codes = errorCodesOf(endpoint);
  const statuses = new Set(codes.map(statusOf));
  return Object.fromEntries(
    Array.from(statuses, (status) => {
      const those = codes.filter((code) => statusOf(code) === status);
      return [
        String(status),
        {
          description: those.map((code) => `\`${code}\``).join(", "),
          headers: status === 429 ? limitedHeaders : requestIdHeader,
          content: { "application/json": { schema: errorEnvelopeSchema } },
        },
      ];
    }),
  );
}

const eventObjects: Readonly<Record<string, z.ZodType>> = {
  customer: customerSchema,
  order: orderSchema,
  subscription: subscriptionSchema,
  webhook_endpoint: webhookEndpointSchema,
};

/** The sandbox's webhooks. The interface shows only the names; envelope and signature are assumed. */
function webhooks(): NonNullable<ZodOpenApiObject["webhooks"]> {
  const chargebacks = Object.values(defaultSettings().chargeback_events);
  const types = [...knownEventTypes, ...chargebacks, "webhook_endpoint.test"].sort();
  return Object.fromEntries(
    types.map((type) => {
      const object = eventObjects[type.slice(0, type.indexOf("."))] ?? z.looseObject({});
      const schema = z.looseObject({
        id: z.string(),
        type: z.literal(type),
        created_at: z.string(),
        api_version: z.string(),
        data: z.looseObject({ object }),
      });
      const header = z.object({
        "SVC-Signature": z.string().describe("t=<unix seconds>,v1=<hex HMAC-SHA256 of t.body>"),
      });
      const post: ZodOpenApiOperationObject = {
        operationId: `on_${type.replaceAll(".", "_")}`,
        summary: type,
        security: [],
        requestParams: { header },
        requestBody: { required: true, content: { "application/json": { schema } } },
        responses: {
          "2XX": {
            description: "Accepted. Without such an answer within 30 seconds the event is sent again.",
          },
        },
      };
      return [type, { post }];
    }),
  );
}

function asObject(schema: z.ZodType): z.ZodObject {
  if (schema instanceof z.ZodObject) return schema;
  throw new Error("parameters are declared as an object");
}
