import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import Router from "@koa/router";
import type { Context } from "koa";
import type { Log } from "../../../platform/log.ts";
import { exampleAnswers } from "./examples.ts";
import { testKey } from "../engine/keys.ts";
import { exampleIdempotencyKey, openApiDocument } from "./openapi.ts";
import type { Mounted } from "../http/mount.ts";

/** Allows files of this site only, and nothing inline. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const assets: Readonly<Record<string, string>> = {
  "swagger-ui.css": "text/css",
  "swagger-ui-bundle.js": "text/javascript",
  "favicon-32x32.png": "image/png",
};

const page = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <title>The commerce service, as the sandbox simulates it</title>
    <link rel="icon" href="/docs/favicon-32x32.png" />
    <link rel="stylesheet" href="/docs/swagger-ui.css" />
  </head>
  <body>
    <div id="swagger-ui"></div>
    <script src="/docs/swagger-ui-bundle.js"></script>
    <script src="/docs/start.js"></script>
  </body>
</html>
`;

/**
 * Makes "Try it out" work without set-up: it uses the key that always exists, and replaces the shown idempotency key
 * with a fresh one for each call.
 */
const startScript = `const ui = SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  validatorUrl: null,
  onComplete: () => ui.preauthorizeApiKey("apiKey", "${testKey}"),
  requestInterceptor(request) {
    for (const name of Object.keys(request.headers)) {
      if (request.headers[name] === "${exampleIdempotencyKey}") request.headers[name] = crypto.randomUUID();
    }
    return request;
  },
});
`;

/** `GET /openapi.json`, and `GET /docs`, which renders it with files of this machine only. */
export function createDocsRouter(endpoints: readonly Mounted[], log: Log): Router {
  const router = new Router();
  let document: Promise<string> | undefined;
  const make = async () => {
    const answers = await exampleAnswers(endpoints, log);
    return JSON.stringify(
      openApiDocument(
        endpoints.map(({ endpoint }) => endpoint),
        answers,
      ),
    );
  };
  router.get("/openapi.json", async (ctx: Context) => {
    document ??= make();
    ctx.body = await document;
  });
  router.get("/docs", (ctx: Context) => send(ctx, "text/html", page));
  router.get("/docs/start.js", (ctx: Context) => send(ctx, "text/javascript", startScript));
  for (const [name, type] of Object.entries(assets)) {
    router.get(`/docs/${name}`, (ctx: Context) => send(ctx, type, readAsset(name)));
  }
  return router;
}

function send(ctx: Context, type: string, body: string | Buffer): void {
  ctx.type = type;
  ctx.set("Content-Security-Policy", contentSecurityPolicy);
  ctx.set("X-Content-Type-Options", "nosniff");
  ctx.set("Referrer-Policy", "no-referrer");
  ctx.body = body;
}

function readAsset(name: string): Buffer {
  const require = createRequire(import.meta.url);
  return readFileSync(join(dirname(require.resolve("swagger-ui-dist/package.json")), name));
}
