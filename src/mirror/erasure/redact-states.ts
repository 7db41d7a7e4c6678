import type { Knex } from "knex";
import { sqlArray } from "../../platform/sql-array.ts";
import { canonicalJson, contentHash } from "../canonical.ts";
import type { Column, GroupState } from "../observation.ts";
import { withoutPersonalData, withoutPersonalField } from "./personal-data.ts";

/** The customer that a state belongs to, as far as it shows one. */
const customerOf = ({ group, id, columns }: GroupState): Column | undefined =>
  group.startsWith("customer") ? id : columns["customer_id"];

/**
 * Takes what is personal out of the states of people who were erased, before they are written or compared: what the
 * service still shows, a late event or a replay must not bring it back. Changes the states in place. One query; in
 * a transaction, an erasure that begins waits for its end.
 */
export async function redactErased(db: Knex, states: readonly GroupState[]): Promise<void> {
  const customers = new Set(states.map(customerOf).filter((id) => typeof id === "string"));
  if (customers.size === 0) return;
  const { rows } = await db
    .raw<{
      rows: { customer_id: string }[];
    }>("select customer_id from mirror.erasures where customer_id = any(?::text[])", [
      sqlArray([...customers]),
    ])
    .options({ name: "mirror-erasures" });
  if (rows.length === 0) return;
  const erased = new Set<unknown>(rows.map(({ customer_id }) => customer_id));
  for (const state of states) if (erased.has(customerOf(state))) redactState(state);
}

function redactState(state: GroupState): void {
  const columns = Object.entries(state.columns).map(([key, value]) => [
    key,
    withoutPersonalField(key, value) as Column,
  ]);
  state.replaceContent(
    redactedContent(state.json).json,
    Object.fromEntries(columns) as GroupState["columns"],
  );
}

/** Canonical content without what is personal, and its hash. */
export function redactedContent(json: string): { json: string; hash: string } {
  const content = withoutPersonalData(JSON.parse(json)) as Record<string, unknown>;
  const canonical = canonicalJson(content);
  return { json: canonical, hash: contentHash(canonical) };
}

/** A version ends with the hash of its content (version.ts). */
export const withHash = (version: string, from: string, to: string): string =>
  version.endsWith(from) ? version.slice(0, version.length - from.length) + to : version;
