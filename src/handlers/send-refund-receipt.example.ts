import { createTransport } from "nodemailer";
import { defineHandler } from "../parts/delivery/dispatch/define-handler.ts";

/**
 * Mails the customer a receipt for each refund. RECEIPTS_SMTP_URL (smtps://user:password@mail.example.com) and
 * RECEIPTS_FROM configure it.
 *
 * An example that is off: files named `….example.ts` are not loaded. Copy it to `send-refund-receipt.ts` and change it.
 * This folder is yours; upgrades never touch it. docs/handlers.md lists what a handler can rely on.
 */
export default defineHandler({
  name: "send-refund-receipt",
  on: ["order.refunded"],
  async run({ change, order, idempotencyKey, db, log, moneyText, isTest }) {
    const { RECEIPTS_SMTP_URL: url, RECEIPTS_FROM: from } = process.env;
    if (url === undefined || from === undefined) {
      throw new Error("RECEIPTS_SMTP_URL and RECEIPTS_FROM are not set");
    }
    const customer = await db("mirror.customers")
      .where({ id: order.customer_id })
      .first<{ email: string | null } | undefined>("email");
    // An error is an attempt: the customer may be on the way.
    if (customer === undefined) throw new Error("the mirror does not know the customer yet");
    if (customer.email === null) return log.info("the customer was erased: no receipt");

    if (change.amount === null) {
      throw new Error("its amount is not known: look at it, then retry or skip this change");
    }
    const refund = moneyText(change.amount, change.currency);
    const mailer = createTransport({ url, socketTimeout: 20_000 });
    try {
      await mailer.sendMail({
        from,
        // While you try it, the mail is yours.
        to: isTest ? from : customer.email,
        subject: `Your refund of ${refund}`,
        text: `We have refunded ${refund} of your order ${order.order_number}.\n`,
        // The same at each attempt: a mailbox recognises a repeat.
        messageId: `<${idempotencyKey}@tallyhook>`,
      });
    } finally {
      mailer.close();
    }
  },
});
