import { RetryLater, defineHandler } from "tallyhook/handlers";

/** Notes the total of each order that is paid, and what is known of a customer. */
export default defineHandler({
  name: "note-orders",
  on: ["order.paid", "customer.created"],
  transactional: true,
  async run({ change, order, customer, client, endpoints, db, idempotencyKey, isTest, log }) {
    if (isTest && order !== undefined) {
      const { body } = await client.get(endpoints.getOrder, { params: { id: order.id } });
      throw new RetryLater(body?.status === "paid" ? 60_000 : 1_000);
    }
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
