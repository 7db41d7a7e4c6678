import type { ReadById } from "../contract/endpoint.ts";
import { NestedTooDeeply } from "./canonical.ts";
import { maskFields } from "./privacy/mask.ts";
import { customer } from "./resources/customer.ts";
import { order } from "./resources/order.ts";
import type { GroupDefinition, MirrorResource } from "./resources/resource.ts";
import { subscription } from "./resources/subscription.ts";
import { transaction } from "./resources/transaction.ts";
import type { Decoded, Snapshot, Resource } from "./snapshot.ts";

/** Every resource of the mirror. Tables are always written in this order, so that two batches cannot deadlock. */
export const mirrorResources: readonly MirrorResource[] = [order, transaction, subscription, customer];

export const isResource = (name: string): name is Resource =>
  mirrorResources.some((resource) => resource.name === name);

/** The resource that the prefix of an event's type names; undefined if there is none. */
export function resourceOfType(type: string | null): Resource | undefined {
  const family = type?.split(".", 1)[0] ?? "";
  return isResource(family) ? family : undefined;
}

/** Throws `TypeError` for an unknown name. */
export function resourceNamed(name: string): MirrorResource {
  const found = mirrorResources.find((resource) => resource.name === name);
  if (found !== undefined) return found;
  const known = mirrorResources.map((resource) => resource.name).join(", ");
  throw new TypeError(`unknown resource ${name}: the mirror has ${known}`);
}

/** The resource and the definition of a group of fields; undefined for an unknown name. */
export function groupNamed(group: string): { resource: MirrorResource; definition: GroupDefinition } | undefined {
  for (const resource of mirrorResources) {
    const definition = Object.hasOwn(resource.groups, group) ? resource.groups[group] : undefined;
    if (definition !== undefined) return { resource, definition };
  }
  return undefined;
}

/** Decodes one snapshot without applying it. Masks the card numbers in it. */
export function decode(observation: Snapshot): Decoded {
  const resource = resourceNamed(observation.resource);
  try {
    const decoded = resource.decode(observation);
    return holdsNoCardNumber(decoded) ? decoded : decodeMasked(resource, observation, decoded);
  } catch (error) {
    if (!(error instanceof NestedTooDeeply)) throw error;
    return { ok: false, partial: false, reason: "object: is nested too deeply to be stored" };
  }
}

/** Detected while canonicalizing: a second pass over every field would cost too much. */
const holdsNoCardNumber = (decoded: Decoded): boolean =>
  !("states" in decoded) || !decoded.states.some(({ mayHoldCardNumber }) => mayHoldCardNumber);

function decodeMasked({ name, decode: decodeAs }: MirrorResource, observation: Snapshot, decoded: Decoded): Decoded {
  const { value, paths } = maskFields(observation.object);
  if (paths.length === 0 || !("id" in decoded)) return decoded;
  const maskedCardNumbers = { resource: name, id: decoded.id, paths };
  return decodeAs({ ...observation, object: value, maskedCardNumbers });
}

/** The endpoint that reads an object by its id, and the query that makes its answer complete. */
export function readEndpointOf(name: string): {
  endpoint: ReadById;
  query: Record<string, string>;
} {
  const { object, expand } = resourceNamed(name).service;
  return { endpoint: object, query: expand?.object === undefined ? {} : { expand: expand.object } };
}
