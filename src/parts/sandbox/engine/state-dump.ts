import { z } from "zod";
import type { Clock } from "../../../platform/clock.ts";
import type { OrderRecord } from "../resources/orders/order.ts";
import type { TokenStore } from "../resources/payment-methods/payment-method.ts";
import type { ProductImageRecord } from "../resources/products/product.ts";
import type { TransactionRecord } from "../resources/transactions/transaction.ts";
import { bodyOf, plainAnswer } from "./answer.ts";
import type { Job } from "./clock.ts";
import { faultsSchema } from "./faults.ts";
import { type ApiKey, firstMerchant, modes } from "./keys.ts";
import { settingsSchema } from "./settings.ts";
import type { Space } from "./space.ts";
import type { State } from "./state.ts";
import type { StoredRecord, Table } from "./store/table.ts";

/** The version of the format below. Any other version is refused. */
export const dumpFormat = 2;

/**
 * Everything that a sandbox needs to continue as if it had not stopped. Rate windows are left out: they start afresh.
 */
export function dumpState(state: State, wallClock: Clock): Json {
  const { chance, time } = state;
  return {
    format: dumpFormat,
    seed: state.seed,
    clock: { now_ms: time.nowMs(), mode: time.mode, wall_ms: wallClock.now().getTime() },
    settings: state.settings,
    faults: structuredClone(state.faults),
    chance: {
      deliveryIds: chance.deliveryIds.mark(),
      faults: chance.faults.words(),
      flaws: chance.flaws.words(),
      api: chance.api.words(),
    },
    keys: [...state.keys],
    merchants: Object.fromEntries(
      Array.from(state.merchants.values(), ({ id, name, spaces }) => [
        id,
        { name, spaces: Object.fromEntries(modes.map((mode) => [mode, dumpSpace(spaces[mode])])) },
      ]),
    ),
    jobs: time.planned().filter(({ kind }) => kind !== "delivery"),
    events: state.events.dump(),
    deliveries: state.dispatcher.dump(),
  };
}

type AnyTable = Table<StoredRecord>;

/** The tables of a space by name, so that a new resource is saved without a change here. */
function tablesOf(space: Space): [string, AnyTable][] {
  return Object.entries(space).filter((entry): entry is [string, AnyTable] => {
    const value: unknown = entry[1];
    return typeof value === "object" && value !== null && "inGroup" in value;
  });
}

/** The plain lookups of a space by name. Images are left out: they are not plain data. */
function mapsOf(space: Space): [string, Map<string, unknown>][] {
  return Object.entries(space).filter(
    (entry): entry is [string, Map<string, unknown>] => entry[1] instanceof Map && entry[0] !== "images",
  );
}

/** The tokens, cards and vaults of the gateway. */
function dumpVault({ vault }: Space): Json {
  const tokens = (store: TokenStore) => store.entries();
  return {
    customers: [...vault.customers],
    cards: [...vault.cards],
    paymentTokens: tokens(vault.paymentTokens),
    cardTokens: tokens(vault.cardTokens),
  };
}

function dumpImage({ bytes, ...image }: ProductImageRecord): Json {
  return { ...image, bytes: bytes.toString("base64") };
}

/**
 * The content of one environment, as values that are turned into text later. Records do not change until then; values
 * that do (how often a card was used) are copied here.
 */
function dumpSpace(space: Space): Json {
  const tables = tablesOf(space).map(([name, table]): [string, Json] => {
    if (name === "orders") return [name, { rows: table.all(), show: showOrder }];
    if (name === "paymentMethods") return [name, space.paymentMethods.all().map(copyCard)];
    return [name, table.all()];
  });
  return {
    ids: space.ids.mark(),
    account: { ...space.account },
    hardDeleted: {
      customers: [...space.hardDeleted.customers],
      products: [...space.hardDeleted.products],
    },
    tables: Object.fromEntries(tables),
    maps: Object.fromEntries(mapsOf(space).map(([name, map]) => [name, [...map]])),
    images: Array.from(space.images, ([id, images]) => [id, images.map(dumpImage)]),
    vault: dumpVault(space),
    idempotency: {
      rows: space.idempotency.done(),
      show: ({ answer, ...entry }: ReturnType<Space["idempotency"]["done"]>[number]) => ({
        ...entry,
        status: answer.status,
        body: bodyOf(answer),
      }),
    },
    unfinished: space.idempotency.unfinished(),
  };
}

/** An order without its transactions, which it names by id: they are in a table of their own. */
function showOrder({ transactions, ...order }: OrderRecord): Json {
  return { ...order, transactions: transactions.map(({ id }) => id) };
}

function copyCard<T extends { used: object }>(card: T): T {
  return { ...card, used: { ...card.used } };
}

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

/** The outer shape of a dump. The records in it are trusted, since this program wrote them. */
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

/** Replaces the content of a fresh state with that of a dump. The clock continues at the dump's time. */
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

/** An order that shares its transactions with their table, as charges make it. */
function withSales(space: Space, dumped: Record<string, unknown>): OrderRecord {
  const ids = z.array(z.string()).parse(dumped["transactions"]);
  const transactions = ids.map((id): TransactionRecord => {
    const transaction = space.transactions.get(id);
    if (transaction === undefined) throw new Error(`no transaction ${id}`);
    return transaction;
  });
  return { ...dumped, transactions } as unknown as OrderRecord;
}

/** Any JSON value, or rows that are rendered one by one while the text is made. */
export type Json = unknown;

interface Rows {
  rows: readonly unknown[];
  show: (row: never) => unknown;
}

const rowsPerPiece = 500;

/**
 * JSON in pieces of moderate size, since a large state does not fit in one string. Other work of the process gets a
 * turn between two pieces. Objects nest; arrays are split by their length only.
 */
export function* jsonPieces(value: Json): Generator<string> {
  if (isRows(value)) yield* arrayPieces(value.rows, value.show);
  else if (Array.isArray(value)) yield* arrayPieces(value, (row: unknown) => row);
  else if (typeof value === "object" && value !== null) yield* objectPieces(value);
  else yield JSON.stringify(value) ?? "null";
}

function* objectPieces(value: object): Generator<string> {
  let separator = "{";
  for (const [name, inner] of Object.entries(value)) {
    if (inner === undefined) continue;
    yield `${separator}${JSON.stringify(name)}:`;
    yield* jsonPieces(inner);
    separator = ",";
  }
  yield separator === "{" ? "{}" : "}";
}

function* arrayPieces(rows: readonly unknown[], show: (row: never) => unknown): Generator<string> {
  yield "[";
  for (let from = 0; from < rows.length; from += rowsPerPiece) {
    const shown = rows.slice(from, from + rowsPerPiece).map((row) => JSON.stringify(show(row as never)));
    yield (from === 0 ? "" : ",") + shown.join(",");
  }
  yield "]";
}

function isRows(value: unknown): value is Rows {
  return typeof value === "object" && value !== null && "rows" in value && "show" in value;
}
