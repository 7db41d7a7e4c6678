import { z } from "zod";
import { defineEndpoint } from "../endpoint.ts";
import { isoDate } from "../request-fields.ts";

export const accountSchema = z.looseObject({
  api_version: z.string().nullable().describe("Null: the latest is used"),
  latest_api_version: z.string(),
});

export const getAccount = defineEndpoint({
  name: "getAccount",
  method: "GET",
  path: "/account",
  summary: "Retrieve the account with its API version",
  permission: "account:read",
  answer: accountSchema,
});

export const upgradeApiVersion = defineEndpoint({
  name: "upgradeApiVersion",
  method: "POST",
  path: "/account/api_version",
  summary: "Pin the account to a newer API version; there is no way back",
  permission: "account:write",
  idempotency: "optional",
  body: z.object({ version: isoDate }),
  answer: z.object({
    api_version: z.string(),
    previous_version: z.string().nullable(),
    latest_api_version: z.string(),
  }),
  errors: ["invalid_api_version", "api_version_sunset"],
});
