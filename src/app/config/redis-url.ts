import { z } from "zod";
import type { SettingKind } from "../../platform/setting-kinds.ts";
import { readRedisUrl } from "../../core/queue/redis-url.ts";

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
