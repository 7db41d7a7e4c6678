import { signatureScheme } from "../../../src/core/contract/signature/signature-scheme.ts";
import { type Json, type Received, type TestSandbox, startReceiver, startTestSandbox } from "../harness.ts";

/** A sandbox and somebody who listens to it. */
export interface WebhookStage {
  sandbox: TestSandbox;
  receiver: Awaited<ReturnType<typeof startReceiver>>;
  /** What the receiver answers from now on; 200 at first. */
  answer: (received: Received) => number | Promise<number>;
  close(): Promise<void>;
}

export async function startWebhookStage(): Promise<WebhookStage> {
  const sandbox = await startTestSandbox();
  const receiver = await startReceiver((received) => stage.answer(received));
  const stage: WebhookStage = {
    sandbox,
    receiver,
    answer: () => 200,
    async close() {
      await sandbox.close();
      await receiver.close();
    },
  };
  return stage;
}

export async function deliveriesOf(sandbox: TestSandbox, query = ""): Promise<Json[]> {
  return (await sandbox.control("GET", `/deliveries${query}`)).data;
}

/** Whether a delivery is signed with one of the secrets, now. */
export function verify({ raw, rawHeaders }: Received, ...secrets: string[]) {
  return signatureScheme("svc").verify({
    rawHeaders,
    body: raw,
    secrets: secrets.map((value, i) => ({ id: `s${i}`, value, notBefore: null, notAfter: null })),
    now: new Date(),
    toleranceSeconds: 300,
  });
}
