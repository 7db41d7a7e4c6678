import Router from "@koa/router";
import type { Context } from "koa";

import { modes } from "../mode.ts";
import type { ProductImageRecord } from "../records/product.ts";
import { notFound } from "../refusal.ts";
import type { State } from "../state.ts";

/** Serves product images where their `url` says, without a key, as a CDN does. */
export function createCdnRouter(state: () => State): Router {
  const router = new Router({ prefix: "/cdn" });
  router.get("/images/:file", (ctx: Context) => {
    const { file = "" } = ctx["params"] as Record<string, string>;
    const image = imageNamed(state(), file.replace(/\.[a-z]+$/, ""));
    if (image === undefined) throw notFound("image");
    ctx.type = image.type;
    ctx.set("X-Content-Type-Options", "nosniff");
    ctx.body = image.bytes;
  });
  return router;
}

function imageNamed(state: State, id: string): ProductImageRecord | undefined {
  for (const { spaces } of state.merchants.values()) {
    for (const mode of modes) {
      for (const images of spaces[mode].images.values()) {
        const image = images.find((known) => known.id === id);
        if (image !== undefined) return image;
      }
    }
  }
  return undefined;
}
