/** The minimal receiver: node:http and the HMAC. Stores nothing. */
import { createServer } from "node:http";
import { serve } from "./serve.ts";
import { answer, isAuthentic } from "./verify.ts";

serve(
  createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks);
      const text = JSON.stringify(answer);
      response.writeHead(isAuthentic(request.rawHeaders, body) ? 200 : 401, {
        "Content-Type": "application/json; charset=utf-8",
        "Content-Length": Buffer.byteLength(text),
      });
      response.end(text);
    });
  }),
);
