import { z } from "zod";
import type { ZodOpenApiOperationObject } from "zod-openapi";
import { createDocument } from "zod-openapi";

import { errorEnvelopeSchema } from "../service/error-envelope.ts";
import type { Endpoint } from "../service/routes/endpoint.ts";
import { exampleBodies } from "./example-bodies.ts";
import { statusOf } from "./http/errors.ts";
import { latestVersion } from "./rules/versions.ts";

const error = errorEnvelopeSchema.meta({ id: "Error" });

const commonHeaders = z.object({
  "SVC-Version": z.string().optional().describe("YYYY-MM-DD; overrides the account's version once"),
});

/** What the pages of the documentation show; they send a fresh one in its place. */
export const exampleIdempotencyKey = "3f2b8c1e-0000-4000-8000-000000000000";

const idempotencyKey = z
  .uuidv4()
  .describe("Repeats within 24 hours get the first answer; this page sends a fresh one a call")
  .meta({ example: exampleIdempotencyKey });

/** What every endpoint can answer (spec, Endpoints). */
const everywhere = ["missing_api_key", "insufficient_permissions", "rate_limit_exceeded"];

/** The OpenAPI 3.1 document of the service, from the declarations that the sandbox mounts and the client is typed by. */
export function openApiDocument(endpoints: readonly Endpoint[]): ReturnType<typeof createDocument> {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {};
  for (const endpoint of endpoints) {
    const path = (paths[endpoint.path] ??= {});
    path[endpoint.method.toLowerCase()] = operation(endpoint);
  }
  return createDocument(
    {
      openapi: "3.1.0",
      info: {
        title: "The commerce service, as the sandbox plays it",
        version: latestVersion.version,
        description:
          "Money is in cents, times are ISO 8601, ids are UUIDs, lists are paged by cursor.",
      },
      servers: [{ url: "/v1" }],
      security: [{ apiKey: [] }],
      components: { securitySchemes: { apiKey: { type: "http", scheme: "bearer" } } },
      paths,
    },
    {
      // What no JSON Schema can say (a value checked by a function) is any value.
      override({ zodSchema, jsonSchema }) {
        if (zodSchema._zod.def.type === "custom") jsonSchema.type ??= "object";
      },
    },
  );
}

function operation(endpoint: Endpoint): ZodOpenApiOperationObject {
  const { name, summary, permission, status, answer } = endpoint;
  const [, resource = ""] = endpoint.path.split("/");
  return {
    operationId: name,
    summary,
    description: `Permission: \`${permission}\`. ${idempotencyNote(endpoint)}`,
    tags: [resource],
    requestParams: {
      path: asObject(endpoint.params),
      query: asObject(endpoint.query),
      header: headersOf(endpoint),
    },
    ...bodyOf(endpoint),
    responses: {
      [status]: { description: "Done", content: { "application/json": { schema: answer } } },
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

function bodyOf({
  name,
  method,
  encoding,
  body,
}: Endpoint): Pick<ZodOpenApiOperationObject, "requestBody"> {
  const takesNone = method === "GET" || body.safeParse(undefined).data === undefined;
  if (takesNone && !(body instanceof z.ZodObject)) return {};
  const type = encoding === "image" ? "multipart/form-data" : "application/json";
  const example = Object.hasOwn(exampleBodies, name) ? { example: exampleBodies[name] } : {};
  return { requestBody: { content: { [type]: { schema: body, ...example } } } };
}

/** One response for each status, with the codes that come under it. */
function errorResponses({ errors }: Endpoint): ZodOpenApiOperationObject["responses"] {
  const codes = ["validation_error", ...everywhere, ...errors];
  const statuses = new Set(codes.map(statusOf));
  return Object.fromEntries(
    Array.from(statuses, (status) => {
      const those = codes.filter((code) => statusOf(code) === status);
      const description = those.map((code) => `\`${code}\``).join(", ");
      return [String(status), { description, content: { "application/json": { schema: error } } }];
    }),
  );
}

function asObject(schema: z.ZodType): z.ZodObject {
  if (schema instanceof z.ZodObject) return schema;
  throw new Error("parameters are declared as an object");
}
