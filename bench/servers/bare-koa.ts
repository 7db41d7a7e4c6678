/**
 * Koa, raw-body and the HMAC, no storage: the upper bound with this framework. With `parse` as second argument it also
 * parses the event's id from the JSON, as the receiver must.
 */
import { createServer } from "node:http";
import Koa from "koa";
import getRawBody from "raw-body";
import { serve } from "./serve.ts";
import { answer, isAuthentic } from "./verify.ts";

const parses = process.argv[3] === "parse";
const app = new Koa();

app.use(async (ctx) => {
  const body = await getRawBody(ctx.req, {
    length: ctx.req.headers["content-length"] ?? null,
    limit: 1_048_576,
  });
  ctx.status = isAuthentic(ctx.req.rawHeaders, body) ? 200 : 401;
  ctx.body = parses ? { ...answer, id: idOf(body) } : answer;
});

function idOf(body: Buffer): string {
  return (JSON.parse(body.toString("utf8")) as { id: string }).id;
}

const handle = app.callback();
serve(createServer((request, response) => void handle(request, response)));
