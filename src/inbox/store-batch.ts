import type { ClientBase } from "pg";
import type { Log } from "../platform/log.ts";
import { insertNewRows } from "./append-statement.ts";
import type { NewRows, PendingRow } from "./append-statement.ts";
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
  /** Releases the answers, all together. */
  answer(): void;
}

/** Stores a batch; of two copies in it, the first is the new one. Nobody is answered yet. */
export async function storeBatch(
  deps: StoreDeps,
  batch: readonly WaitingRow[],
): Promise<StoredBatch> {
  const first = new Map<string, WaitingRow>();
  const copies: WaitingRow[] = [];
  for (const row of batch) {
    if (first.has(row.key)) copies.push(row);
    else first.set(row.key, row);
  }
  const distinct = [...first.values()];
  const { seqs, keys: newKeys } = await insertOrSplit(deps, distinct);
  const duplicates = [...distinct.filter(({ key }) => !newKeys.has(key)), ...copies];
  const repeats = new Map<string, { row: PendingRow; times: number }>();
  for (const { key } of duplicates) {
    const row = first.get(key);
    if (row !== undefined) repeats.set(key, { row, times: (repeats.get(key)?.times ?? 0) + 1 });
  }
  const answer = () => {
    for (const row of distinct) {
      row.resolve({ eventId: row.event.eventId, duplicate: !newKeys.has(row.key) });
    }
    for (const { key, event, resolve } of copies) {
      // An event that was stored without its extracts has another id.
      resolve({ eventId: (first.get(key)?.event ?? event).eventId, duplicate: true });
    }
  };
  return { seqs, repeats: [...repeats.values()], answer };
}

/**
 * One statement for all; when the server refuses a value of one row, the batch is halved until that row stands
 * alone, and it is stored without its extracts. Its neighbours do not notice.
 */
async function insertOrSplit(deps: StoreDeps, rows: WaitingRow[]): Promise<NewRows> {
  try {
    return await insertNewRows(deps.client, rows);
  } catch (error) {
    if (!isRefusedValue(error)) throw error;
    const [only] = rows;
    if (rows.length === 1 && only !== undefined) return insertBare(deps, only, error);
    const half = Math.ceil(rows.length / 2);
    const first = await insertOrSplit(deps, rows.slice(0, half));
    const second = await insertOrSplit(deps, rows.slice(half));
    return {
      seqs: [...first.seqs, ...second.seqs],
      keys: new Set([...first.keys, ...second.keys]),
    };
  }
}

async function insertBare(
  { client, log }: StoreDeps,
  row: WaitingRow,
  refusal: unknown,
): Promise<NewRows> {
  const { code } = refusal as { code?: string };
  const eventId = `sha256:${row.sha256}`;
  log.warn({ code, eventId }, "an event is stored without its extracts");
  row.event = { ...row.event, eventId, type: null, apiVersion: null, createdAt: null };
  const { seqs } = await insertNewRows(client, [row]);
  return { seqs, keys: new Set(seqs.length > 0 ? [row.key] : []) };
}

/** SQLSTATE class 22: data exception. Nothing else is the fault of a value. */
function isRefusedValue(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return typeof code === "string" && code.startsWith("22");
}
