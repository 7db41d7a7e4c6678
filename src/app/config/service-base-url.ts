import { type SettingKind, baseUrl } from "../../platform/setting-kinds.ts";

const { schema, should } = baseUrl("https://api.example.com");

/** The service's base address. It must not end with /v1, since the paths of the interface begin with it. */
export const serviceBaseUrl: SettingKind<string> = {
  schema: schema.refine((url) => !url.endsWith("/v1"), {
    error: "ends with /v1, which Tallyhook adds itself",
  }),
  should: `${should}, without /v1`,
};
