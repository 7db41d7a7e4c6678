import { createHash } from "node:crypto";
import { stringify } from "csv-stringify/sync";
import { strToU8, zipSync } from "fflate";
import type { Chargeback } from "../../../core/mirror/chargebacks.ts";
import type { Address, DisputeFacts, EarlierOrder } from "../../../core/mirror/dispute-facts.ts";
import { oneLine, withoutFormula } from "../../../platform/readable-text.ts";
import { amountWithoutCode } from "../../../platform/money.ts";

/** The evidence that a merchant sends the bank. The same facts give the same evidence at any time. */
export interface Evidence extends Omit<DisputeFacts, "earlier"> {
  chargeback: Chargeback;
  earlier: readonly ComparedOrder[];
}

/** An earlier order, and its matches with the disputed one. */
export interface ComparedOrder extends EarlierOrder {
  daysBefore: number;
  isSameCard: boolean;
  isSameAddress: boolean;
  /** Old enough and not too old for Visa's Compelling Evidence 3.0, and of the same card. */
  mayCount: boolean;
}

const dayMs = 86_400_000;
/** Visa's Compelling Evidence 3.0: two undisputed sales of the same card, so many days before the dispute. */
const leastDays = 120;
const mostDays = 365;

export function evidenceOf(chargeback: Chargeback, facts: DisputeFacts): Evidence {
  const { order } = facts;
  const earlier = facts.earlier.map((each): ComparedOrder => {
    const daysBefore = Math.floor((chargeback.openedAt.getTime() - each.createdAt.getTime()) / dayMs);
    const isSameCard =
      order !== null &&
      ((order.paymentMethodId !== null && order.paymentMethodId === each.paymentMethodId) ||
        (order.cardLastFour !== null &&
          order.cardLastFour === each.cardLastFour &&
          order.cardBrand === each.cardBrand));
    const isSameAddress =
      order?.address != null && each.address !== null && addressKey(order.address) === addressKey(each.address);
    const mayCount = isSameCard && daysBefore >= leastDays && daysBefore <= mostDays;
    return { ...each, daysBefore, isSameCard, isSameAddress, mayCount };
  });
  return { ...facts, chargeback, earlier };
}

/** The place of an address, without the person. */
const addressKey = (address: Address): string =>
  ["address_line1", "address_line2", "city", "state", "postal_code", "country"]
    .map((name) => (address[name] ?? "").toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, ""))
    .join("|");

/** Everything as JSON, exactly as the mirror has it; amounts are texts of minor units. */
export const evidenceJson = (evidence: Evidence): string =>
  `${JSON.stringify(evidence, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value), 2)}\n`;

export const sha256 = (bytes: string | Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

type Cell = string | number | bigint | Date | boolean | null;

const cellText = (cell: Cell): string => {
  if (cell === null) return "";
  if (cell instanceof Date) return cell.toISOString();
  return typeof cell === "string" ? withoutFormula(oneLine(cell, 1_000)) : String(cell);
};

const csv = (head: readonly string[], rows: readonly (readonly Cell[])[]): string =>
  stringify([head, ...rows.map((row) => row.map(cellText))]);

const amount = (minor: bigint | null, currency: string | null): string =>
  minor === null ? "" : amountWithoutCode(String(minor), currency);

/** The files of the pack, by names of our own; `page` is the printable page. */
export function evidenceFiles(evidence: Evidence, page: string): Record<string, string> {
  const { order, transactions, earlier, timeline } = evidence;
  const files: Record<string, string> = {
    "evidence.html": page,
    "evidence.json": evidenceJson(evidence),
    "items.csv": itemsCsv(order?.items ?? []),
    "transactions.csv": csv(
      [
        "id",
        "type",
        "status",
        "amount",
        "currency",
        "created_at",
        "processor_transaction_id",
        "authorization_code",
        "avs_result",
        "cvv_result",
      ],
      transactions.map((each) => [
        each.id,
        each.type,
        each.status,
        amount(each.amountMinor, each.currency),
        each.currency,
        each.createdAt,
        each.processorTransactionId,
        each.authorizationCode,
        each.avsResult,
        each.cvvResult,
      ]),
    ),
    "earlier-orders.csv": csv(
      [
        "id",
        "order_number",
        "created_at",
        "days_before",
        "amount",
        "currency",
        "status",
        "same_card",
        "same_address",
        "may_count",
      ],
      earlier.map((each) => [
        each.id,
        each.orderNumber,
        each.createdAt,
        each.daysBefore,
        amount(each.totalMinor, each.currency),
        each.currency,
        each.status,
        each.isSameCard,
        each.isSameAddress,
        each.mayCount,
      ]),
    ),
    "timeline.csv": csv(
      ["at", "what", "id", "type", "status"],
      timeline.map(({ at, resource, id, type, status }) => [at, resource, id, type, status]),
    ),
  };
  const names = Object.keys(files).sort();
  files["SHA256SUMS"] = names.map((name) => `${sha256(files[name] ?? "")}  ${name}\n`).join("");
  return files;
}

const itemFields = ["id", "product_id", "name", "quantity", "price", "total"];

/** The contract names these fields; what else an item has is in the JSON. */
const itemsCsv = (items: readonly Readonly<Record<string, unknown>>[]): string =>
  csv(
    itemFields,
    items.map((item) => itemFields.map((name) => itemText(item[name]))),
  );

/** A value of an item: the interface leaves the form of a price open. */
export const itemText = (value: unknown): string =>
  value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value);

/** The same files give the same bytes. The times in it are one fixed day. */
export const zipped = (files: Readonly<Record<string, string>>): Buffer =>
  Buffer.from(
    zipSync(
      Object.fromEntries(
        Object.keys(files)
          .sort()
          .map((name) => [name, strToU8(files[name] ?? "")]),
      ),
      // By the local clock, as the format has it: these are the same bytes in every zone.
      { mtime: new Date(2000, 0, 1), level: 9 },
    ),
  );
