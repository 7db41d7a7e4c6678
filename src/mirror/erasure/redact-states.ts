import type { Knex } from "knex";
import { canonicalJson, contentHash } from "../canonical.ts";
import type { Column, GroupState } from "../observation.ts";
import { erasedAmong, erasedObjectsAmong } from "./erased-people.ts";
import { withoutPersonalData, withoutPersonalField } from "./personal-data.ts";

/** The customer that a state belongs to, as far as it shows one. */
const ownerOf = ({ group, id, columns }: GroupState): Column | undefined =>
  group.startsWith("customer") ? id : columns["customer_id"];

/** Groups that hold nothing personal, whoever they are of. */
const impersonal = new Set(["order.dunning", "customer.absence"]);

/**
 * Takes what is personal out of the states of people who were erased, before they are written or compared: what the
 * service still shows, a late event or a replay must not bring it back. A state that shows no customer belongs to whom
 * another state of its object shows, or else to whom its object ever belonged. Changes the states in place. At most two
 * queries; in a transaction, an erasure that begins waits for its end.
 */
export async function redactErased(db: Knex, states: readonly GroupState[]): Promise<void> {
  const owned = states.map((state) => ({ state, owner: ownerOf(state) }));
  const ownerOfObject = new Map<string, string>();
  const owners = new Set<string>();
  for (const { state, owner } of owned) {
    if (typeof owner !== "string") continue;
    owners.add(owner);
    ownerOfObject.set(state.id, owner);
  }
  const erased = await erasedAmong(db, [...owners]);
  const unowned = states.filter(
    ({ id, group }) => !ownerOfObject.has(id) && !impersonal.has(group),
  );
  const objects = await erasedObjectsAmong(
    db,
    unowned.map(({ id }) => id),
  );
  for (const { state, owner } of owned) {
    const whose = typeof owner === "string" ? owner : ownerOfObject.get(state.id);
    const isTheirs = whose === undefined ? objects.has(state.id) : erased.has(whose);
    if (isTheirs) redactState(state);
  }
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

/** Canonical content without what is personal, and its hash. The content of an order's items is their list. */
export function redactedContent(json: string): { json: string; hash: string } {
  const content = withoutPersonalData(JSON.parse(json));
  const canonical = Array.isArray(content)
    ? canonicalJson({ items: content }).slice(`{"items": `.length, -1)
    : canonicalJson(content as Record<string, unknown>);
  return { json: canonical, hash: contentHash(canonical) };
}

/** A version ends with the hash of its content (version.ts). */
export const withHash = (version: string, from: string, to: string): string =>
  version.endsWith(from) ? version.slice(0, version.length - from.length) + to : version;
