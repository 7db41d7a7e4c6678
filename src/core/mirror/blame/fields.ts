import { type WireObject, isObject } from "../../contract/wire-types.ts";

/** A field of an object: its keys joined by dots. A list is one value. */
export type FieldPath = string;

/** The most fields of one state that are compared: fields beyond them, which only a hostile object has, are ignored. */
const mostFields = 300;

/** The fields of a content with their values; objects are taken apart, lists are not. */
export function fieldsOf(content: WireObject): ReadonlyMap<FieldPath, unknown> {
  const fields = new Map<FieldPath, unknown>();
  collect(content, "", fields);
  return fields;
}

function collect(object: WireObject, prefix: string, fields: Map<FieldPath, unknown>): void {
  for (const [key, value] of Object.entries(object)) {
    if (fields.size >= mostFields) return;
    if (isObject(value)) collect(value, `${prefix}${key}.`, fields);
    else if (value !== null) fields.set(prefix + key, value);
  }
}

/** Whether two values of a field are the same. An absent field equals null. */
export const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a ?? null) === JSON.stringify(b ?? null);

export interface FieldChange {
  field: FieldPath;
  from: unknown;
  to: unknown;
}

/** The differences between two contents, in the order of the newer one. */
export function changesBetween(older: WireObject | null, newer: WireObject): FieldChange[] {
  const before = fieldsOf(older ?? {});
  const after = fieldsOf(newer);
  return [...new Set([...after.keys(), ...before.keys()])].flatMap((field) => {
    const [from, to] = [before.get(field), after.get(field)];
    return isSame(from, to) ? [] : [{ field, from, to }];
  });
}
