import type Router from "@koa/router";
import { z } from "zod";

import { Refusal } from "../refusal.ts";
import type { ControlDeps } from "./control.ts";
import { addControl } from "./control.ts";
import { nothing } from "./fields.ts";
import { clockBody } from "./overview.ts";

/** `GET /_sandbox/idle`: answers when nothing is due or under way; later retries do not count. 503 after `timeout_seconds`. */
export function addIdle(router: Router, { state }: ControlDeps): void {
  addControl(router, {
    method: "GET",
    path: "/idle",
    query: z.object({
      timeout_seconds: z
        .string()
        .regex(/^\d{1,4}$/)
        .transform(Number)
        .default(120),
    }),
    body: nothing,
    async run({ query }) {
      const current = state();
      let timer: NodeJS.Timeout | undefined;
      const timeout = new Promise<"timeout">((resolve) => {
        timer = setTimeout(() => resolve("timeout"), query.timeout_seconds * 1000);
      });
      const first = await Promise.race([current.idle(), timeout]);
      clearTimeout(timer);
      if (first === "timeout") {
        const { pending } = current.dispatcher;
        throw new Refusal("service_unavailable", `Not idle yet: ${pending} deliveries pending.`);
      }
      return { idle: true, ...clockBody(current) };
    },
  });
}
