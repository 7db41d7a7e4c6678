import { RetryLater, defineHandler } from "../dispatch/define-handler.ts";

/**
 * An example that is off: files named `….example.ts` are not loaded. Copy it to `send-refund-receipt.ts`, and change it.
 * This folder is yours; upgrades never touch it. docs/handlers.md has what a handler may count on.
 */
export default defineHandler({
  name: "send-refund-receipt",
  on: ["order.refunded"],
  async run({ change, order, idempotencyKey, log, signal, isTest }) {
    if (isTest) return log.info({ order: order.id }, "a receipt would be sent");
    const answer = await fetch("https://mail.example.com/receipts", {
      method: "POST",
      // The same at each attempt, so that a repeat sends nothing twice.
      headers: { "content-type": "application/json", "idempotency-key": idempotencyKey },
      body: JSON.stringify({
        customer: order.customer_id,
        order: order.order_number,
        amountMinor: change.amount,
        currency: change.currency,
      }),
      signal,
    });
    if (answer.status === 429) throw new RetryLater(60_000);
    if (!answer.ok) throw new Error(`the mail service answers ${answer.status}`);
  },
});
