import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import type { ServiceClient } from "../../src/core/client/service-client.ts";
import { type Attempt, attemptRun } from "../../src/parts/delivery/dispatch/attempt.ts";
import sendRefundReceipt from "../../src/handlers/send-refund-receipt.example.ts";
import { createLog } from "../../src/platform/log.ts";
import { apply, sampleCustomer, sampleOrder, shown } from "../mirror/samples.ts";
import { type MailServer, startMailServer } from "../support/mail-server.ts";
import { useTestDatabase } from "../support/use-database.ts";

const database = useTestDatabase();
const log = createLog({ level: "silent", name: "test" });
let mails: MailServer;
beforeAll(async () => {
  mails = await startMailServer();
  await apply(database.db, shown("customer", sampleCustomer()));
});
afterAll(() => mails.close());
beforeEach(() => {
  vi.stubEnv("RECEIPTS_SMTP_URL", mails.url);
  vi.stubEnv("RECEIPTS_FROM", "shop@example.com");
  return () => vi.unstubAllEnvs();
});

/** Runs the example on a refund, as a worker does. */
const receiptOf = (amount: number | null, currency: string | null): Promise<void> =>
  attemptRun(
    { handlersDb: database.db, client: {} as ServiceClient, log },
    sendRefundReceipt,
    {
      change: { seq: 1, resource: "order", kind: "order.refunded", amount, currency },
      object: sampleOrder({ customer_id: sampleCustomer().id }),
      idempotencyKey: `${amount}-${currency}`,
      isTest: false,
    } as Attempt,
    () => Promise.resolve(),
  );

test.each([
  ["usd", "1234.56 USD"],
  ["huf", "1234.56 HUF"],
  ["cop", "1234.56 COP"],
  ["idr", "1234.56 IDR"],
  ["pkr", "1234.56 PKR"],
  ["iqd", "123.456 IQD"],
  ["kwd", "123.456 KWD"],
  ["jpy", "123456 JPY"],
  ["clf", "12.3456 CLF"],
  ["zzz", "123456 minor units of ZZZ"],
])("the receipt of a refund in %s says %s, by the table of the reports", async (currency, says) => {
  await receiptOf(123_456, currency);
  const { source = "" } = mails.mails.at(-1) ?? {};
  expect(/^Subject: (.*)\r$/m.exec(source)?.[1]).toBe(`Your refund of ${says}`);
});

test("no customer is told of a refund whose amount is not known", async () => {
  const before = mails.mails.length;
  await expect(receiptOf(null, "usd")).rejects.toThrow("its amount is not known");
  expect(mails.mails).toHaveLength(before);
});
