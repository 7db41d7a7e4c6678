import type { Knex } from "knex";
import type { WireObject } from "../../contract/wire-types.ts";
import { resourceNamed } from "../resources.ts";
import { type MirrorResource, namedGroups, readColumns } from "../resources/resource.ts";
import type { Resource } from "../snapshot.ts";
import type { Winners } from "./winners.ts";

/** A column that several groups determine together. */
export interface ComputedColumn {
  value: unknown;
  /** The group whose state gave the value; null where none did. */
  group: string | null;
}

/**
 * Evaluates the computed columns from the winning states, with the very expressions that write them, and finds the
 * group behind each value: a second evaluation puts the group's name in place of each value of its content, and where
 * no content decides, one more leaves out each group in turn. One statement, none where the resource has no such
 * column.
 */
export async function readComputedColumns(
  db: Knex,
  name: Resource,
  winners: Winners,
): Promise<ReadonlyMap<string, ComputedColumn>> {
  const resource = resourceNamed(name);
  const computed = Object.entries(resource.computed ?? {});
  if (computed.length === 0) return new Map();
  const inputs = inputsOf(resource, winners);
  const groups = [...winners.keys()];
  const selected = computed.flatMap(([column, sql]) => [
    `to_jsonb(${sql((of) => `t.${of}`)}) as ${column}`,
    `to_jsonb(${sql((of) => (inputs.get(of)?.type === "jsonb" ? `t.marked_${of}` : `t.${of}`))}) as by_${column}`,
    ...groups.map((group, n) => {
      const without = sql((of) => (inputs.get(of)?.group === group ? `t.without_${of}` : `t.${of}`));
      return `to_jsonb(${without}) as without_${n}_${column}`;
    }),
  ]);
  const given = [...inputs].flatMap(([column, { type, value, marked, none }]) => [
    { name: column, type, value },
    { name: `marked_${column}`, type, value: marked },
    { name: `without_${column}`, type, value: none },
  ]);
  const { rows } = await db.raw<{ rows: [WireObject] }>(
    `select ${selected.join(", ")} from (
       select ${given.map((column) => `?::${column.type} as ${column.name}`).join(", ")}) t`,
    given.map(({ value }) => value),
  );
  const [row] = rows;
  return new Map(
    computed.map(([column]) => {
      const value = row[column] ?? null;
      const marked = row[`by_${column}`];
      const isMarked = groups.some((group) => group === marked);
      const needed = groups.find((_, n) => (row[`without_${n}_${column}`] ?? null) !== value && value !== null);
      return [column, { value, group: isMarked ? (marked as string) : (needed ?? null) }];
    }),
  );
}

interface Input {
  group: string;
  type: string;
  value: string | number | boolean | null;
  /** Evaluated with the group's name in place of each value of the content. */
  marked: string | number | boolean | null;
  /** Evaluated as if the group was never seen. */
  none: string | null;
}

/** The columns that the expressions may name, as the winning states have them. */
function inputsOf(resource: MirrorResource, winners: Winners): ReadonlyMap<string, Input> {
  const inputs = new Map<string, Input>();
  for (const { group, columns, versionColumn, contentColumn } of namedGroups(resource)) {
    const winner = winners.get(group);
    const put = (column: string, type: string, value: Input["value"], none: Input["none"] = null) =>
      inputs.set(column, { group, type, value, marked: value, none });
    put(versionColumn, `text collate "C"`, winner?.version ?? "", "");
    const state = winner?.state;
    const values = readColumns(columns, state?.content ?? {}, state?.updatedAt ?? "");
    for (const [column, { type }] of Object.entries(columns)) {
      put(column, type, state === undefined ? null : (values[column] ?? null));
    }
    if (group === resource.name) put("source_updated_at", "timestamptz", state?.updatedAt ?? null);
    if (contentColumn === undefined) continue;
    inputs.set(contentColumn, {
      group,
      type: "jsonb",
      value: state === undefined ? null : JSON.stringify(state.content),
      marked: state === undefined ? null : JSON.stringify(markedWith(group, state.content)),
      none: null,
    });
  }
  return inputs;
}

function markedWith(mark: string, value: unknown): unknown {
  if (value === null || value === undefined) return null;
  if (typeof value !== "object" || Array.isArray(value)) return mark;
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, markedWith(mark, field)]));
}
