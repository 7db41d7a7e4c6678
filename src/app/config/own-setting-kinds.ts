import { z } from "zod";
import { type Role, isRole, roleNames } from "../people/permissions.ts";
import { type SettingKind, baseUrl } from "../../platform/setting-kinds.ts";
import { readRedisUrl } from "../../core/queue/redis-url.ts";

/** The roles for members of the company's groups. */
export const groupRoles: SettingKind<Readonly<Record<string, readonly Role[]>>> = {
  schema: z.string().transform((text, context) => {
    const byGroup = new Map<string, Role[]>();
    for (const pair of text.split(",")) {
      const at = pair.lastIndexOf("=");
      const group = pair.slice(0, Math.max(0, at)).trim();
      const names = pair
        .slice(at + 1)
        .split("+")
        .map((name) => name.trim());
      if (group === "" || !names.every(isRole)) {
        context.addIssue({ code: "custom", message: "has a part that is not group=role" });
      } else {
        byGroup.set(group, [...(byGroup.get(group) ?? []), ...names]);
      }
    }
    return Object.fromEntries(byGroup);
  }),
  should: `group=role pairs separated by commas, several roles joined by +, each role one of ${roleNames.join(", ")}, such as billing-team=finance+viewer`,
};

/** The address of one Redis server, of a Redis Cluster, or of the Sentinels of a master. */
export const redisUrl: SettingKind<string> = {
  schema: z.string().superRefine((text, context) => {
    const { problem } = readRedisUrl(text);
    if (problem !== undefined) context.addIssue({ code: "custom", message: problem });
  }),
  should:
    "a URL such as redis://host:6379, redis+cluster://host1:6379,host2:6379 or " +
    "redis+sentinel://host1:26379,host2:26379/mymaster",
};

const { schema, should } = baseUrl("https://api.example.com");

/** The service's base address. It must not end with /v1, since the paths of the interface begin with it. */
export const serviceBaseUrl: SettingKind<string> = {
  schema: schema.refine((url) => !url.endsWith("/v1"), {
    error: "ends with /v1, which Tallyhook adds itself",
  }),
  should: `${should}, without /v1`,
};
