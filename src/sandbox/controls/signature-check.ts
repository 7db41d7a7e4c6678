import type Router from "@koa/router";
import { z } from "zod";

import type { Clock } from "../../platform/clock.ts";
import { signatureScheme } from "../../service/signature/signature-scheme.ts";
import { notFound, Refusal } from "../refusal.ts";
import { liveSecrets } from "../wire/webhook-endpoint.ts";
import type { ControlDeps } from "./control.ts";
import { addControl } from "./control.ts";
import { nothing } from "./fields.ts";
import { place, spaceAt } from "./places.ts";

const question = z.strictObject({
  endpoint_id: z.string(),
  /** The headers of a delivery that carry its signature. */
  headers: z.record(z.string(), z.string()),
  /** Its bytes as text. */
  body: z.string(),
  tolerance_seconds: z.int().min(0).default(300),
  ...place,
});

/**
 * `POST /_sandbox/signature_check`: whether a captured delivery verifies with its endpoint's live secrets. When it does
 * not, 401 `webhook_signature_failed` with the reason.
 */
export function addSignatureCheck(router: Router, { state, wallClock }: ControlDeps): void {
  addControl(router, {
    method: "POST",
    path: "/signature_check",
    query: nothing,
    body: question,
    run: ({ body }) => verdict(state, wallClock, body),
  });
}

function verdict(
  state: ControlDeps["state"],
  wallClock: Clock,
  asked: z.output<typeof question>,
): { valid: true } {
  const current = state();
  const endpoint = spaceAt(current, asked).webhookEndpoints.get(asked.endpoint_id);
  if (endpoint === undefined) throw notFound("webhook endpoint", "endpoint_id");
  const secrets = liveSecrets(endpoint, current.time.iso());
  const checked = signatureScheme(current.settings.signature_scheme).verify({
    rawHeaders: Object.entries(asked.headers).flat(),
    body: Buffer.from(asked.body),
    secrets: secrets.map((value, i) => ({
      id: `secret ${i + 1}`,
      value,
      notBefore: null,
      notAfter: null,
    })),
    now: wallClock.now(),
    toleranceSeconds: asked.tolerance_seconds,
  });
  if (checked.ok) return { valid: true };
  throw new Refusal("webhook_signature_failed", `The signature does not hold: ${checked.reason}.`);
}
