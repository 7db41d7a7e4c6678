import { z } from "zod";
import { type SignatureScheme, secretProblem } from "../../../core/contract/signature/verification.ts";
import type { Clock } from "../../../platform/clock.ts";
import type { SentMessage } from "../message.ts";
import { settingsObject } from "../../../platform/setting-schemas.ts";
import { fromVariable } from "../setting-schemas.ts";
import { type Channel, headerKey, titleOf } from "./channel.ts";
import { CannotOpen, asJson, channelKind, httpTo, secret } from "./channel-kind.ts";
import type { HttpPost } from "./http-post.ts";

/**
 * Any receiver of webhooks. The body is an event in the service's form (id, type, created_at, data.object), signed with
 * the scheme by which this deployment verifies webhooks. A repeat has the same id.
 */
export const webhook = channelKind({
  settings: settingsObject({
    kind: z.literal("webhook"),
    urlFrom: fromVariable,
    secretFrom: fromVariable,
  }),
  list: { size: 200_000, sizeOf: asJson },
  keepsIncidents: true,
  open({ urlFrom, secretFrom }, deps) {
    const { scheme, clock } = deps;
    const signingSecret = secret(secretFrom, deps);
    const problem = secretProblem(scheme, signingSecret);
    if (problem !== null) throw new CannotOpen(`${secretFrom} ${problem}`);
    const http = httpTo(secret(urlFrom, deps), urlFrom, deps);
    return createSignedWebhookChannel(http, { scheme, secret: signingSecret, clock });
  },
});

function createSignedWebhookChannel(
  http: HttpPost,
  { scheme, secret, clock }: { scheme: SignatureScheme; secret: string; clock: Clock },
): Channel<SentMessage> {
  return {
    kind: "webhook",
    host: http.host,
    send(message, { signal }) {
      const body = JSON.stringify(webhookEvent(message));
      const signature = scheme.sign({
        body: Buffer.from(body),
        secrets: [secret],
        at: clock.now(),
        messageId: headerKey(message),
      });
      const headers = { ...signature, "idempotency-key": headerKey(message) };
      return http.post(body, headers, signal);
    },
    close: () => http.close(),
  };
}

/** The message, with only its title cleaned: JSON needs no further escaping, and the reader's markup is unknown. */
function webhookEvent(message: SentMessage): object {
  const { idempotencyKey, dedupKey, at, items, ...rest } = message;
  const told = { ...rest, title: titleOf(message), dedup_key: dedupKey };
  return {
    id: idempotencyKey,
    type: `alert.${message.action}`,
    created_at: at,
    data: { object: { ...told, ...(items === undefined ? {} : { items }) } },
  };
}
