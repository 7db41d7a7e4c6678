import { RetryLater, defineHandler } from "tallyhook/handlers";

/** Notes the total of each order that is paid, and what is known of a customer. */
export default defineHandler({
  name: "note-orders",
  on: ["order.paid", "customer.created"],
  transactional: true,
  async run({ change, order, customer, db, idempotencyKey, isTest, log }) {
    if (isTest) throw new RetryLater(60_000);
    const noted: string = order === undefined ? (customer.email ?? "no address") : order.id;
    const total: number | null = order?.total ?? null;
    log.info({ seq: change.seq }, "noted");
    await db("shop.noted").insert({
      seq: change.seq,
      kind: change.kind,
      noted,
      total,
      key: idempotencyKey,
    });
  },
});
