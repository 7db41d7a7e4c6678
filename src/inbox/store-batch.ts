import type { ClientBase } from "pg";
import type { Log } from "../platform/log.ts";
import { insertNewRows, rowKey } from "./append-statement.ts";
import type { PendingRow } from "./append-statement.ts";
import type { Appended } from "./event.ts";

/** A row that somebody waits for. */
export interface WaitingRow extends PendingRow {
  key: string;
  resolve(appended: Appended): void;
  reject(error: Error): void;
}

export interface StoreDeps {
  client: ClientBase;
  log: Log;
}

export interface StoredBatch {
  /** Of the new rows. */
  seqs: number[];
  repeats: { row: PendingRow; times: number }[];
}

/** Stores a batch and releases its answers together; of two copies in it, the first is the new one. */
export async function storeBatch(
  deps: StoreDeps,
  batch: readonly WaitingRow[],
): Promise<StoredBatch> {
  const copies = new Map<string, WaitingRow[]>();
  for (const row of batch) {
    const known = copies.get(row.key);
    if (known === undefined) copies.set(row.key, [row]);
    else known.push(row);
  }
  const distinct = [...copies.values()].flatMap(([first]) => first ?? []);
  const stored = await insertOrSplit(deps, distinct);
  const repeats: StoredBatch["repeats"] = [];
  for (const [key, rows] of copies) {
    const [first] = rows;
    if (first === undefined) continue;
    const isNew = stored.has(key);
    const times = rows.length - (isNew ? 1 : 0);
    if (times > 0) repeats.push({ row: first, times });
    const { eventId } = first.event;
    rows.forEach(({ resolve }, n) => resolve({ eventId, duplicate: !isNew || n > 0 }));
  }
  return { seqs: [...stored.values()], repeats };
}

/**
 * One statement for all; when the server refuses a value of one row, the batch is halved until that row stands
 * alone, and it is stored without its extracts. Its neighbours do not notice.
 */
async function insertOrSplit(deps: StoreDeps, rows: WaitingRow[]): Promise<Map<string, number>> {
  try {
    return await insertNewRows(deps.client, rows);
  } catch (error) {
    if (!isRefusedValue(error)) throw error;
    const [only] = rows;
    if (rows.length === 1 && only !== undefined) return insertBare(deps, only, error);
    const half = Math.ceil(rows.length / 2);
    const first = await insertOrSplit(deps, rows.slice(0, half));
    const second = await insertOrSplit(deps, rows.slice(half));
    return new Map([...first, ...second]);
  }
}

async function insertBare(
  { client, log }: StoreDeps,
  row: WaitingRow,
  refusal: unknown,
): Promise<Map<string, number>> {
  const { code } = refusal as { code?: string };
  const eventId = `sha256:${row.sha256.toString("hex")}`;
  log.warn({ code, eventId }, "an event is stored without its extracts");
  row.event = { ...row.event, eventId, type: null, apiVersion: null, createdAt: null };
  const seq = (await insertNewRows(client, [row])).get(rowKey(row));
  return seq === undefined ? new Map() : new Map([[row.key, seq]]);
}

/** SQLSTATE class 22: data exception. Nothing else is the fault of a value. */
function isRefusedValue(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return typeof code === "string" && code.startsWith("22");
}
