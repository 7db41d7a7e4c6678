import { z } from "zod";

import { plainAnswer } from "../answer.ts";
import { faultsSchema } from "../faults.ts";
import type { ApiKey } from "../keys.ts";
import { firstMerchant } from "../keys.ts";
import { modes } from "../mode.ts";
import type { OrderRecord } from "../records/order.ts";
import type { ProductImageRecord } from "../records/product.ts";
import type { TransactionRecord } from "../records/transaction.ts";
import { settingsSchema } from "../settings.ts";
import type { Space } from "../space.ts";
import type { State } from "../state.ts";
import type { Job } from "../timeline.ts";
import { dumpFormat } from "./dump-state.ts";
import { mapsOf, tablesOf } from "./dump-space.ts";

const loose = z.looseObject({});
const entries = z.array(z.tuple([z.string(), z.unknown()]));
const words = z.array(z.int()).length(4);
const idsMark = z.object({ orders: z.int(), random: words, secrets: words });

const spaceDump = z.object({
  ids: idsMark,
  account: z.object({ api_version: z.string().nullable() }),
  hardDeleted: z.object({ customers: z.array(z.string()), products: z.array(z.string()) }),
  tables: z.record(z.string(), z.array(z.looseObject({ id: z.string(), created_at: z.string() }))),
  maps: z.record(z.string(), entries),
  images: z.array(z.tuple([z.string(), z.array(z.looseObject({ bytes: z.base64() }))])),
  vault: z.object({
    customers: entries,
    cards: entries,
    paymentTokens: entries,
    cardTokens: entries,
  }),
  idempotency: z.array(
    z.object({
      scope: z.string(),
      fingerprint: z.string(),
      atMs: z.number(),
      status: z.int(),
      body: z.unknown(),
    }),
  ),
  unfinished: z
    .array(
      z.object({
        scope: z.string(),
        fingerprint: z.string(),
        atMs: z.number(),
        orderId: z.string(),
      }),
    )
    .default([]),
});

type SpaceDump = z.output<typeof spaceDump>;

/** The frame of a dump. Its records are taken as this program wrote them. */
export const stateDump = z.object({
  format: z.literal(dumpFormat),
  seed: z.string(),
  clock: z.object({
    now_ms: z.number(),
    mode: z.enum(["real", "manual"]),
    wall_ms: z.number(),
  }),
  settings: settingsSchema,
  faults: faultsSchema,
  chance: z.object({ deliveryIds: idsMark, faults: words, flaws: words, api: words }),
  keys: z.array(z.tuple([z.string(), loose])),
  merchants: z.record(
    z.string(),
    z.object({
      name: z.string(),
      spaces: z.object({ test: spaceDump, live: spaceDump }),
    }),
  ),
  jobs: z.array(loose),
  events: z.object({ total: z.int(), latest: z.array(loose) }),
  deliveries: z.object({
    counts: z.record(z.string(), z.int()),
    latest: z.array(z.looseObject({ event_id: z.string() })),
  }),
});

export type StateDump = z.output<typeof stateDump>;

/** Puts what a dump holds in the place of what a fresh state has. It goes on at the dump's own time. */
export function restoreState(state: State, dump: StateDump): void {
  state.settings = dump.settings;
  state.setFaults(dump.faults);
  const { chance } = state;
  chance.deliveryIds.resume(dump.chance.deliveryIds);
  chance.faults.resume(dump.chance.faults);
  chance.flaws.resume(dump.chance.flaws);
  chance.api.resume(dump.chance.api);
  state.keys.clear();
  for (const [text, key] of dump.keys) state.keys.set(text, key as unknown as ApiKey);
  for (const [id, { name, spaces }] of Object.entries(dump.merchants)) {
    const merchant = id === firstMerchant ? state.merchants.get(id) : state.addMerchant(id, name);
    if (merchant === undefined) throw new Error(`no merchant ${id}`);
    for (const mode of modes) restoreSpace(merchant.spaces[mode], spaces[mode]);
  }
  state.time.restore({ nowMs: dump.clock.now_ms, mode: dump.clock.mode });
  state.events.restore(dump.events as never);
  state.dispatcher.restore(dump.deliveries as never, state.events.latest());
  for (const job of dump.jobs) state.time.schedule(job as unknown as Job);
}

function restoreSpace(space: Space, dump: SpaceDump): void {
  space.ids.resume(dump.ids);
  space.account.api_version = dump.account.api_version;
  space.hardDeleted.customers.splice(0, Infinity, ...dump.hardDeleted.customers);
  space.hardDeleted.products.splice(0, Infinity, ...dump.hardDeleted.products);
  for (const [name, table] of tablesOf(space)) {
    for (const { id } of table.all()) table.delete(id);
    if (name === "orders") continue;
    for (const record of dump.tables[name] ?? []) table.insert(record);
  }
  for (const order of dump.tables["orders"] ?? []) space.orders.insert(withSales(space, order));
  for (const [name, map] of mapsOf(space)) {
    map.clear();
    for (const [key, value] of dump.maps[name] ?? []) map.set(key, value);
  }
  for (const [id, images] of dump.images) {
    const read = images.map((image) => ({ ...image, bytes: Buffer.from(image.bytes, "base64") }));
    space.images.set(id, read as unknown as ProductImageRecord[]);
  }
  const { vault } = space;
  for (const [id, cards] of dump.vault.customers) vault.customers.set(id, cards as string[]);
  for (const [id, card] of dump.vault.cards) vault.cards.set(id, card as never);
  vault.paymentTokens.restore(dump.vault.paymentTokens as never);
  vault.cardTokens.restore(dump.vault.cardTokens as never);
  const answered = dump.idempotency.map(({ status, body, ...entry }) => ({
    ...entry,
    answer: plainAnswer(status, body),
  }));
  space.idempotency.restore([...answered, ...dump.unfinished].sort((a, b) => a.atMs - b.atMs));
}

/** An order with the transactions of the table itself, as charges make it. */
function withSales(space: Space, dumped: Record<string, unknown>): OrderRecord {
  const ids = z.array(z.string()).parse(dumped["transactions"]);
  const transactions = ids.map((id): TransactionRecord => {
    const transaction = space.transactions.get(id);
    if (transaction === undefined) throw new Error(`no transaction ${id}`);
    return transaction;
  });
  return { ...dumped, transactions } as unknown as OrderRecord;
}
