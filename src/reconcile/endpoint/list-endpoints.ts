import type { ServiceClient } from "../../service/client.ts";
import { webhookEndpointSchema } from "../../service/resources/webhook-endpoint.ts";
import type { WebhookEndpoint } from "../../service/resources/webhook-endpoint.ts";

export interface ListedEndpoints {
  endpoints: WebhookEndpoint[];
  /** The service's clock at the last page; null without an answer. */
  date: Date | null;
}

/** Every webhook endpoint of the account. What is none by the contract is left out. Throws a `ServiceError`. */
export async function listEndpoints({
  client,
}: {
  client: Pick<ServiceClient, "listPages">;
}): Promise<ListedEndpoints> {
  const listed: ListedEndpoints = { endpoints: [], date: null };
  for await (const page of client.listPages("/webhook_endpoints", { limit: "100" })) {
    listed.date = page.date;
    for (const item of page.items) {
      const parsed = webhookEndpointSchema.safeParse(item);
      if (parsed.success) listed.endpoints.push(parsed.data);
    }
  }
  return listed;
}

/** Whether two addresses are one: by the letter they may differ in case, port and a slash. */
export function isSameUrl(a: string, b: string): boolean {
  const [first, second] = [a, b].map((url) =>
    URL.canParse(url) ? new URL(url).href.replace(/\/$/, "") : url,
  );
  return first === second;
}
