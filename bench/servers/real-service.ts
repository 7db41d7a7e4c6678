/**
 * The service of a realistic stream, which is the second argument as JSON: it shows each object in its last state. Its
 * lists are empty.
 */
import { createServer } from "node:http";
import type { EventStream } from "../load/protocol.ts";
import { currentObject } from "../load/real-events.ts";
import { serve } from "./serve.ts";

const stream = JSON.parse(process.argv[3] ?? "") as EventStream;

const account = { api_version: "2025-06-01", latest_api_version: "2025-06-01" };
const emptyList = { data: [], url: "/v1/list", has_more: false, cursors: { next: null } };
const unknown = {
  error: { type: "invalid_request_error", code: "resource_not_found", message: "unknown" },
};

function answerTo(path: string): { status: number; body: object } {
  const [, resource = "", id] = path.split("/").filter((part) => part !== "");
  if (resource === "account") return { status: 200, body: account };
  if (id === undefined) return { status: 200, body: emptyList };
  const object = currentObject(stream, resource, id);
  return object === undefined ? { status: 404, body: unknown } : { status: 200, body: object };
}

serve(
  createServer(({ url = "" }, response) => {
    const { status, body } = answerTo(new URL(url, "http://service.test").pathname);
    const text = JSON.stringify(body);
    response.writeHead(status, {
      "Content-Type": "application/json",
      "Content-Length": Buffer.byteLength(text),
    });
    response.end(text);
  }),
);
