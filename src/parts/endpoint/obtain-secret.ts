import type { Knex } from "knex";
import { z } from "zod";
import type { ServiceAnswer } from "../../core/client/call.ts";
import type { ServiceClient } from "../../core/client/service-client.ts";
import { ServiceRefusedError } from "../../core/client/service-errors.ts";
import type { WriteCall, WriteEndpoint } from "../../core/contract/endpoint.ts";
import { createWebhookEndpoint, rotateWebhookSecret } from "../../core/contract/resources/webhook-endpoints.ts";
import type { SignatureSchemeName } from "../../core/contract/signature/signature-scheme.ts";
import type { Clock } from "../../platform/clock.ts";
import { tallyhook } from "../../platform/command-line.ts";
import type { Encryption } from "../../platform/encryption.ts";
import { TallyhookError, UsageError } from "../../platform/errors.ts";
import { inTransaction, liftLimits, tryLock } from "../../platform/postgres/transactions.ts";
import { addSecret, assertSecretLimit, retireSecret } from "../../core/receiver/secrets-store.ts";
import { type EndpointCall, beginCall, findOpenCall, completeCall } from "./endpoint-calls.ts";
import { listKnownEndpoints, rememberEndpoint } from "./endpoints.ts";

export type ObtainedSecret = Extract<SecretCallResult, { outcome: "done" }>;

/** The key of the advisory lock of these calls. An arbitrary fixed number. */
const callLock = 7_255_011_951;

/**
 * Runs work that may begin or finish a call, exclusively: a call that another process still waits for looks like one
 * that a crash interrupted. The lock ends with its connection, so none is left over. Throws `UsageError` while another
 * one runs.
 */
export function withCallLock<T>({ db }: EndpointTools, work: () => Promise<T>): Promise<T> {
  return inTransaction(db, async (trx) => {
    // It waits for the service.
    await liftLimits(trx);
    if (!(await tryLock(trx, callLock))) {
      throw new UsageError(
        "Another command or page is registering the endpoint or rotating its secret. Nothing was done. Look at the " +
          "endpoint again when that has ended.",
      );
    }
    return work();
  });
}

/** Finishes the call that a crash interrupted; null when there was none. Needs `withCallLock`. Throws a `ServiceError`. */
export async function finishOpenCall(
  tools: EndpointTools,
): Promise<{ call: EndpointCall; obtained: ObtainedSecret } | null> {
  const call = await findOpenCall(tools.db);
  if (call === null) return null;
  return { call, obtained: await make(tools, call, { isRepeat: true }) };
}

/**
 * Begins a call, makes it, and stores its secret. Needs `withCallLock`. Throws a `ServiceError`. Throws `UsageError` when another call is
 * open or there are too many secrets. That is checked before the service is called, since it shows a secret only once.
 */
export async function obtainSecret(
  tools: EndpointTools,
  requested: Pick<EndpointCall, "kind" | "endpointId" | "body">,
): Promise<ObtainedSecret> {
  await assertSecretLimit(tools.db, tools.wallClock.now());
  return make(tools, await begin(tools, requested), { isRepeat: false });
}

async function begin(
  tools: EndpointTools,
  requested: Pick<EndpointCall, "kind" | "endpointId" | "body">,
): Promise<EndpointCall> {
  const call = { ...requested, idempotencyKey: tools.newKey() };
  if (!(await beginCall(tools.db, call))) {
    throw new UsageError("Another endpoint command is in progress. Run this one again when it has ended.");
  }
  return { ...call, createdAt: tools.wallClock.now() };
}

/** Makes a call and returns its secret. When the service no longer shows it, rotates again. */
async function make(tools: EndpointTools, call: EndpointCall, how: { isRepeat: boolean }): Promise<ObtainedSecret> {
  const result = await makeSecretCall(tools, call, how);
  if (result.outcome === "done") return result;
  const { endpointId } = result;
  const again = await begin(tools, {
    kind: "rotate",
    endpointId,
    body: call.kind === "rotate" ? call.body : {},
  });
  try {
    const second = await makeSecretCall(tools, again, { isRepeat: false });
    if (second.outcome === "done") return second;
  } catch (error) {
    if (!(error instanceof ServiceRefusedError)) throw error;
    throw new TallyhookError(
      `The secret of ${endpointId} was lost: the service shows it only once, and refuses another rotation now ` +
        `(${error.code ?? error.status}). The former secret is kept. Run ` +
        `"${tallyhook(`endpoint rotate ${endpointId}`)}" again when the grace period is over; ` +
        `"${tallyhook("endpoint list")}" shows when.`,
      { cause: error },
    );
  }
  throw new TallyhookError(
    `The service showed no secret of ${endpointId}, not even after another rotation. Rotate it in the merchant ` +
      `portal, then run "${tallyhook("secrets add")}".`,
  );
}

/** Dependencies of the endpoint commands. */
export interface EndpointTools {
  db: Knex;
  client: ServiceClient;
  encryption: Encryption;
  scheme: SignatureSchemeName;
  wallClock: Clock;
  /** A UUID v4. */
  newKey(): string;
  /** The webhook address of this deployment; null when no setting gives it. */
  url: string | null;
  /** Records the stored secret, in the transaction that stores it; absent: no record. */
  record?: (
    trx: Knex.Transaction,
    stored: {
      kind: EndpointCall["kind"];
      endpointId: string;
      secretId: string;
      former: string | null;
    },
  ) => Promise<void>;
}

export type SecretCallResult =
  | {
      outcome: "done";
      endpointId: string;
      secretId: string;
      /** Id of the secret that the rotation ends; null when it is not in the database. */
      former: string | null;
      /** Service time; null after a registration. */
      formerEndsAt: Date | null;
    }
  /** The call was made before, and the service does not show its secret again. */
  | { outcome: "hidden"; endpointId: string };

const answerSchema = z.object({
  id: z.string().min(1),
  url: z.string().optional(),
  signing_secret: z.string().min(1).nullish(),
  new_signing_secret: z.string().min(1).nullish(),
  previous_secret_valid_until: z.string().nullish(),
});

/**
 * Statuses of a refused repeat that leave open whether the first attempt was made. A key without the permission now may
 * have had it then.
 */
const undecided = new Set([401, 403, 408, 409, 429]);

/**
 * Makes a stored call, or repeats it after a crash. One transaction then stores the answer's secret encrypted, ends the
 * former secret at the end of the grace period, and completes the call. `isRepeat`: the call may have been made before.
 * Idempotent. Throws a `ServiceError`; an open call stays open unless it was refused for good.
 */
async function makeSecretCall(
  tools: EndpointTools,
  call: EndpointCall,
  { isRepeat }: { isRepeat: boolean },
): Promise<SecretCallResult> {
  let answer: ServiceAnswer;
  try {
    answer = await sendCall(tools.client, call);
  } catch (error) {
    const completed = await completeRefused(tools, call, { error, isRepeat });
    if (completed === null) throw error;
    return completed;
  }
  const parsed = answerSchema.safeParse(answer.body);
  if (!parsed.success) {
    throw new TallyhookError(
      `The service's answer to ${call.kind} has no endpoint in it; the call stays open. Run the command again.`,
    );
  }
  const { id: endpointId, signing_secret, new_signing_secret } = parsed.data;
  const secret = new_signing_secret ?? signing_secret ?? null;
  if (secret === null) {
    await completeCall(tools.db, { ...call, endpointId }, "hidden");
    return { outcome: "hidden", endpointId };
  }
  const endsAt = Date.parse(parsed.data.previous_secret_valid_until ?? "");
  return storeSecret(tools, call, {
    endpointId,
    url: parsed.data.url ?? null,
    secret,
    formerEndsAt: Number.isNaN(endsAt) ? null : new Date(endsAt),
    answeredAt: answer.date,
  });
}

/** Sends the stored body unchanged: a different body with the same key would be a conflict. */
function sendCall(
  client: ServiceClient,
  { kind, endpointId, body, idempotencyKey }: EndpointCall,
): Promise<ServiceAnswer> {
  if (kind === "register") {
    const asked = { body: body as Sent<typeof createWebhookEndpoint> };
    return client.send(createWebhookEndpoint, asked, { idempotencyKey });
  }
  const asked = {
    params: { id: endpointId ?? "" },
    body: body as Sent<typeof rotateWebhookSecret>,
  };
  return client.send(rotateWebhookSecret, asked, { idempotencyKey });
}

type Sent<E extends WriteEndpoint> = WriteCall<E>["body"];

interface SecretAnswer {
  endpointId: string;
  url: string | null;
  secret: string;
  formerEndsAt: Date | null;
  answeredAt: Date;
}

function storeSecret(
  { db, encryption, scheme, wallClock, record }: EndpointTools,
  call: EndpointCall,
  { endpointId, url, secret, formerEndsAt, answeredAt }: SecretAnswer,
): Promise<SecretCallResult> {
  return db.transaction(async (trx) => {
    const note = `endpoint ${endpointId}`;
    const { id: secretId } = await addSecret({ db: trx, encryption }, scheme, {
      value: secret,
      note,
    });
    const known = (await listKnownEndpoints(trx)).find(({ id }) => id === endpointId);
    const former = known?.secretId === secretId ? null : (known?.secretId ?? null);
    if (former !== null && formerEndsAt !== null) {
      const now = wallClock.now();
      // The end is in service time, and secrets are checked by this machine's clock.
      const at = new Date(now.getTime() + formerEndsAt.getTime() - answeredAt.getTime());
      await retireSecret(trx, former, { now, at });
    }
    await rememberEndpoint(trx, {
      id: endpointId,
      url: url ?? known?.url ?? "",
      secretId,
      rotationEndsAt: formerEndsAt,
    });
    await completeCall(trx, { ...call, endpointId }, "done");
    await record?.(trx, { kind: call.kind, endpointId, secretId, former });
    return { outcome: "done", endpointId, secretId, former, formerEndsAt };
  });
}

/**
 * Completes a refused call. A refused first attempt had no effect. A refused repeat may mean that the service no longer
 * remembers the key; the secret of the first attempt is then lost. Returns null when there is no secret to rotate again
 * for.
 */
async function completeRefused(
  { db }: EndpointTools,
  call: EndpointCall,
  { error, isRepeat }: { error: unknown; isRepeat: boolean },
): Promise<SecretCallResult | null> {
  if (!(error instanceof ServiceRefusedError)) return null;
  if (!isRepeat) {
    await completeCall(db, call, "refused");
    return null;
  }
  if (undecided.has(error.status)) return null;
  if (error.status === 404 || call.endpointId === null) {
    await completeCall(db, call, "refused");
    return null;
  }
  await completeCall(db, call, "hidden");
  return { outcome: "hidden", endpointId: call.endpointId };
}
