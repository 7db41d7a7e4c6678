import { bodyOf } from "../answer.ts";
import type { OrderRecord } from "../records/order.ts";
import type { ProductImageRecord } from "../records/product.ts";
import type { Space } from "../space.ts";
import type { TokenStore } from "../store/vault.ts";
import type { StoredRecord, Table } from "../store/table.ts";
import type { Json } from "./json-text.ts";

type AnyTable = Table<StoredRecord>;

/** The tables of a space by name: whatever resource is added is kept too. */
export function tablesOf(space: Space): [string, AnyTable][] {
  return Object.entries(space).filter((entry): entry is [string, AnyTable] => {
    const value: unknown = entry[1];
    return typeof value === "object" && value !== null && "byCreation" in value;
  });
}

/** The plain lookups of a space by name. Images are no plain data. */
export function mapsOf(space: Space): [string, Map<string, unknown>][] {
  return Object.entries(space).filter(
    (entry): entry is [string, Map<string, unknown>] =>
      entry[1] instanceof Map && entry[0] !== "images",
  );
}

/** Tokens, cards and vaults of the gateway. */
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
 * What one environment holds, as values that are turned into text later: records do not change meanwhile, and what does (how often a
 * card was used) is copied here.
 */
export function dumpSpace(space: Space): Json {
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

/** Transactions stand in their own table: an order names its own. */
function showOrder({ transactions, ...order }: OrderRecord): Json {
  return { ...order, transactions: transactions.map(({ id }) => id) };
}

function copyCard<T extends { used: object }>(card: T): T {
  return { ...card, used: { ...card.used } };
}
