import { type SettingKind, baseUrl } from "../../platform/setting-kinds.ts";

const { schema, should } = baseUrl("https://api.example.com");

/** The service's base address. Paths of the interface begin with /v1, so the address does not end with it. */
export const serviceBaseUrl: SettingKind<string> = {
  schema: schema.refine((url) => !url.endsWith("/v1"), {
    error: "ends with /v1, which is added to it",
  }),
  should: `${should}, without /v1`,
};
