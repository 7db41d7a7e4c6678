import { isLoopbackHost } from "../http/own-site.ts";
import type { Settings } from "../settings.ts";

export type UrlVerdict = "ok" | "malformed" | "insecure";

/** Which webhook URLs are accepted: https, and http where the switch allows it (spec: HTTPS only). */
export function judgeWebhookUrl(
  text: string,
  allowHttp: Settings["allow_http_endpoints"],
): UrlVerdict {
  if (!URL.canParse(text)) return "malformed";
  const url = new URL(text);
  if (url.protocol === "https:") return "ok";
  if (url.protocol !== "http:") return "malformed";
  if (allowHttp === true) return "ok";
  return allowHttp === "loopback" && isLoopbackHost(url.hostname) ? "ok" : "insecure";
}
