import type { ServiceClient } from "../service/client.ts";
import { listPageSchema } from "../service/list-page.ts";
import { ServiceRefusedError } from "../service/service-errors.ts";

export interface Probed {
  pageSize: number;
  calls: number;
  /** The service's `Date`. */
  date: Date;
}

/**
 * Finds the largest page that the service gives: asks for less and less while it refuses, and takes what it gives
 * where it caps silently. Throws the client's errors; the refusal where it refuses every size.
 */
export async function probePageSize(
  client: Pick<ServiceClient, "get">,
  sizes: readonly number[],
  signal: AbortSignal,
): Promise<Probed> {
  for (const [n, size] of sizes.entries()) {
    try {
      const { body, date } = await client.get(
        "/orders",
        { limit: String(size) },
        { lane: "walk", signal },
      );
      const page = listPageSchema.safeParse(body);
      const isCapped = page.success && page.data.has_more && page.data.data.length > 0;
      const pageSize = isCapped ? Math.min(size, page.data.data.length) : size;
      return { pageSize, calls: n + 1, date };
    } catch (error) {
      const isLast = n === sizes.length - 1;
      if (isLast || !(error instanceof ServiceRefusedError) || error.status !== 400) throw error;
    }
  }
  throw new RangeError("no page sizes to ask for");
}
