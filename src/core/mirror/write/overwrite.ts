import type { Knex } from "knex";
import { sqlArray } from "../../../platform/postgres/values.ts";
import { mirrorResources, resourceNamed } from "../resources.ts";
import { type MirrorResource, namedGroups } from "../resources/resource.ts";
import type { GroupState, ObjectKey } from "../snapshot.ts";
import { latestPlausible } from "../version.ts";
import { applyStates, defaultWriterLimits, beginWriting } from "./apply.ts";
import type { WriteResult } from "./write-rows.ts";

/** A person's decision to heal an object: the actor and the reason. */
export interface Decision {
  by: string;
  reason: string;
}

/** The row as the person saw it before deciding to overwrite it. */
export interface RowBeforeHeal {
  /** SHA-256 of the row as JSON; null if there is no row. */
  sha256: string | null;
  /** Version columns dated in the future. */
  futureVersions: string[];
}

export type OverwriteResult =
  /** `heal`: the number of the decision in `mirror.heals`. */
  | { kind: "written"; written: WriteResult; changedColumns: string[]; heal: string }
  /** The row has changed since the person saw it. Nothing was written. */
  | { kind: "changed" };

const versionColumns = ({ groups }: MirrorResource): string[] =>
  Object.values(groups).map(({ versionColumn }) => versionColumn);

/** Reads a row's hash, and the versions of it that are dated in the future at `observedAt`, the service's `Date`. */
export async function readRowBeforeHeal(
  db: Knex,
  { resource, id }: ObjectKey,
  observedAt: string,
): Promise<RowBeforeHeal> {
  const row = await readRow(db, resourceNamed(resource), id, { isLocked: false });
  const limit = latestPlausible(observedAt);
  const isFuture = (column: string) => textOf(row?.row[column]).slice(0, 27) > limit;
  return {
    sha256: row?.sha256 ?? null,
    futureVersions: versionColumns(resourceNamed(resource)).filter(isFuture),
  };
}

/**
 * Heals an object by a person's decision: writes the service's present state, even over higher stored versions. Records
 * in `mirror.heals` the actor, the reason, and the row's hash before and after. States later than the shown one of
 * their group, or dated in the future, move from the history to `mirror.unbelieved`, marked with the heal: no report
 * reads them, and an event that repeats one changes nothing. Writes nothing if the row has changed since it was seen.
 * `states` must be believed. Needs a transaction. May fail with 40P01 or 40001.
 */
export async function overwriteObject(
  trx: Knex.Transaction,
  object: ObjectKey,
  shown: { states: readonly GroupState[]; observedAt: string; seen: RowBeforeHeal },
  { by, reason }: Decision,
): Promise<OverwriteResult> {
  const { resource, id } = object;
  const described = resourceNamed(resource);
  await beginWriting(trx, defaultWriterLimits);
  const before = await readRow(trx, described, id, { isLocked: true });
  if ((before?.sha256 ?? null) !== shown.seen.sha256) return { kind: "changed" };
  await resetVersions(trx, object, shown);
  const written = await applyStates(trx, shown.states);
  const after = await readRow(trx, described, id, { isLocked: false });
  if (after === undefined) throw new TypeError(`the states of ${resource} ${id} made no row`);
  const columns = Object.keys(after.row);
  const changedColumns = columns.filter(
    (column) => JSON.stringify(after.row[column]) !== JSON.stringify(before?.row[column] ?? null),
  );
  const [heal] = await trx("mirror.heals")
    .insert({
      resource,
      id,
      healed_by: by,
      reason,
      before_sha256: before?.sha256 ?? null,
      after_sha256: after.sha256,
      changed_columns: changedColumns,
    })
    .returning<{ seq: string }[]>("seq");
  if (heal === undefined) throw new TypeError("a heal was recorded without a number");
  await overruleStates(trx, object, shown, heal.seq);
  return { kind: "written", written, changedColumns, heal: heal.seq };
}

interface StoredRow {
  row: Record<string, unknown>;
  sha256: string;
}

async function readRow(
  db: Knex,
  { table }: MirrorResource,
  id: string,
  { isLocked }: { isLocked: boolean },
): Promise<StoredRow | undefined> {
  const { rows } = await db.raw<{ rows: StoredRow[] }>(
    `select to_jsonb(t) as row, encode(sha256(convert_to(to_jsonb(t)::text, 'UTF8')), 'hex') as sha256
     from mirror.${table} t where t.id = ? ${isLocked ? "for update" : ""}`,
    [id],
  );
  return rows[0];
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** Moves overruled states out of the history: those later than the shown states, and those dated in the future. */
async function overruleStates(
  trx: Knex.Transaction,
  { resource, id }: ObjectKey,
  { states, observedAt }: { states: readonly GroupState[]; observedAt: string },
  heal: string,
): Promise<void> {
  const shown = states.map((state) => ({ ...keyOf(state), at: state.updatedAt }));
  // The service shows the object, so it is not absent.
  const { absence } = resourceNamed(resource);
  if (absence !== undefined) shown.push({ group: absence.group, id, at: observedAt });
  await trx.raw(
    "select mirror.overrule(?::text[], ?::text[], ?::timestamptz[], ?::timestamptz, ?::timestamptz, ?::bigint)",
    [
      sqlArray(shown.map(({ group }) => group)),
      sqlArray(shown.map((one) => one.id)),
      sqlArray(shown.map(({ at }) => at)),
      latestPlausible(observedAt),
      observedAt,
      heal,
    ],
  );
}

const keyOf = ({ group, id }: GroupState) => ({ group, id });

/**
 * Resets stored versions so that the shown states win. A group that is not shown is emptied if its version is in the
 * future, or if it was never seen, so that its fields come from no state. Its next snapshot fills it again.
 */
async function resetVersions(
  trx: Knex.Transaction,
  object: ObjectKey,
  { states, observedAt }: { states: readonly GroupState[]; observedAt: string },
): Promise<void> {
  const limit = latestPlausible(observedAt);
  for (const resource of mirrorResources) {
    const own = states.filter(({ group }) => Object.hasOwn(resource.groups, group));
    const ids = new Set(own.map(({ id }) => id));
    if (resource.name === object.resource) ids.add(object.id);
    for (const id of [...ids].sort()) {
      const isObject = id === object.id && resource.name === object.resource;
      const shown = new Set(own.flatMap((state) => (state.id === id ? [state.group] : [])));
      const sets = namedGroups(resource).flatMap((group) => {
        const v = group.versionColumn;
        // The service shows the object, so it is not absent.
        const isShown = shown.has(group.group) || (isObject && group.group === resource.absence?.group);
        if (isShown) return [`${v} = ''`];
        const isForgotten = `left(${v}, 27) > :limit${isObject ? ` or ${v} = ''` : ""}`;
        const fields = [...Object.keys(group.columns), group.contentColumn ?? v];
        return [
          `${v} = case when ${isForgotten} then '' else ${v} end`,
          ...fields.flatMap((column) =>
            column === v ? [] : [`${column} = case when ${isForgotten} then null else ${column} end`],
          ),
        ];
      });
      if (isObject && resource.absence === undefined) sets.push("deleted_at = null");
      await trx.raw(`update mirror.${resource.table} set ${sets.join(", ")} where id = :id`, {
        id,
        limit,
      });
    }
  }
}
