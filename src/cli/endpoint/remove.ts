import { forgetEndpoint, listKnownEndpoints } from "../../reconcile/endpoint/known-endpoints.ts";
import { visible } from "../../platform/visible-text.ts";
import { ServiceRefusedError } from "../../service/service-errors.ts";
import { listEndpoints } from "../../reconcile/endpoint/list-endpoints.ts";
import { assertCanAsk, confirm } from "../confirm.ts";
import type { CliContext } from "../context.ts";
import { withEndpointTools } from "./at-hand.ts";
import { noEndpoint } from "./own-endpoint.ts";

export interface RemoveOptions {
  yes?: boolean;
}

/**
 * Removes an endpoint, after asking; one that is gone already is only forgotten, so that a run after a crash ends well.
 */
export async function removeOwnEndpoint(
  context: CliContext,
  id: string,
  { yes }: RemoveOptions,
): Promise<void> {
  if (yes !== true) assertCanAsk(context);
  const { secretId, wasThere } = await withEndpointTools(context, async (tools) => {
    const known = (await listKnownEndpoints(tools.db)).find((endpoint) => endpoint.id === id);
    const there = (await listEndpoints(tools)).endpoints.find((endpoint) => endpoint.id === id);
    if (there === undefined && known === undefined) throw noEndpoint(id);
    if (there !== undefined && yes !== true) {
      const which = `${id} (${visible(there.url)}, ${visible(there.status)})`;
      await confirm(context, `Remove ${which} at the service? No event is sent to it any more.`);
    }
    const wasThere = await tools.client
      .delete(`/webhook_endpoints/${encodeURIComponent(id)}`, { idempotencyKey: tools.newKey() })
      .then(
        () => true,
        (error: unknown) => {
          const isGone = error instanceof ServiceRefusedError && error.status === 404;
          if (!isGone || known === undefined) throw error;
          return false;
        },
      );
    await forgetEndpoint(tools.db, id);
    return { secretId: known?.secretId ?? null, wasThere };
  });
  context.stdout.write(
    wasThere ? `${id} is removed: no event is sent to it any more.\n` : `${id} was gone already.\n`,
  );
  if (secretId !== null) {
    context.stdout.write(
      `Its secret is kept for what is under way: "tallyhook secrets retire ${secretId}" ends it.\n`,
    );
  }
}
