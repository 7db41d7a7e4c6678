import type { Knex } from "knex";
import { takeTurn } from "../../../platform/postgres/numbered-rows.ts";
import { sqlArray } from "../../../platform/postgres/values.ts";
import type { GroupState, Resource } from "../snapshot.ts";
import type { WriteResult } from "../write/write-rows.ts";
import { fixedForm } from "../blame/object-history.ts";
import { knownUntilSql } from "../restores.ts";
import { clockToleranceMs } from "../version.ts";
import { type ChangeKind, type Fact, factsOf, isDispute, isShownBefore, kindHappenedAt, kindsOf } from "./kinds.ts";
import { type Step, stepsOf } from "./steps.ts";

export interface Written extends WriteResult {
  resource: Resource;
}

interface Change {
  resource: Resource;
  id: string;
  kind: string;
  cause: string;
  /** When it happened, for changes that may have happened before the feed began; null otherwise. */
  happenedAt: string | null;
  /** The step of the object's row; null if the row was not written. */
  step: Step | null;
  fact: ShownFact | null;
  isSuperseded: boolean;
}

/** A fact, and the step that showed it first; null if it came late and changed no row, or other states reveal it. */
interface ShownFact extends Fact {
  cause: string;
  /** When it happened, and the time of the state that showed it first. */
  at: string;
  shownAt: string;
  shownBy: Step | null;
  /** The place of its step among the object's steps. */
  place: number;
  /**
   * Whether earlier transactions recorded states of the same opening, none of which followed an opening already in the
   * feed.
   */
  isOlder?: boolean;
  /** No step shows it, and it is so now. */
  isPresent?: boolean;
}

/**
 * Adds a transaction's writes to the feed: at least one change for each row that shows a new state. States of one
 * object that come together are recorded as if they had come one by one (`stepsOf`). A refund is recorded once, a
 * dispute and its end once for each time it was opened, also where a state that came late shows them (`is_superseded`).
 * Changes from before the first event have the cause `import`. Three statements at most. Must follow the write of the
 * rows, whose locks put the changes of one object in the order of their numbers. Needs the transaction that wrote them.
 */
export async function recordChanges(trx: Knex.Transaction, written: readonly Written[]): Promise<void> {
  const steps: StepsByKey = new Map();
  for (const { resource, rows } of written) {
    for (const row of rows) steps.set(keyOf(resource, row.id), stepsOf(resource, row));
  }
  const shown = [...refundsIn(written, steps), ...(await newDisputes(trx, written, steps))];
  const facts = await newFacts(trx, shown.sort(byTime));
  const changes = changesOf(written, steps, facts);
  if (changes.length > 0) await insertChanges(trx, changes);
}

type StepsByKey = Map<string, readonly Step[]>;

/** In the order of the feed: for each object, the change of a step, then the facts that it shows. */
function changesOf(written: readonly Written[], steps: StepsByKey, facts: readonly ShownFact[]): Change[] {
  const changes: Change[] = [];
  const factsOfStep = new Map<Step | null, ShownFact[]>();
  for (const fact of facts) {
    const own = steps.get(keyOf(fact.resource, fact.id)) ?? [];
    const { shownBy, shownAt } = fact;
    const isOwn = shownBy === null || own.includes(shownBy);
    // A refund is shown by its transaction, and recorded on its order as the order was by then.
    const during = isOwn ? shownBy : own.find(({ until }) => until >= shownAt);
    const step = during ?? own.at(-1) ?? null;
    factsOfStep.set(step, [...(factsOfStep.get(step) ?? []), fact]);
  }
  const tellFacts = (step: Step | null): void => {
    for (const fact of factsOfStep.get(step) ?? []) {
      const { resource, id, kind, cause, at: happenedAt } = fact;
      const isSuperseded = fact.shownBy === null && fact.isPresent !== true;
      changes.push({ resource, id, kind, cause, happenedAt, step, fact, isSuperseded });
    }
  };
  for (const { resource, rows } of written) {
    for (const { id } of rows) {
      for (const step of steps.get(keyOf(resource, id)) ?? []) {
        const kinds = kindsOf(resource, step);
        // A fact that came late does not imply that the row has changed.
        const isTold = () => factsOfStep.get(step)?.some(({ shownBy }) => shownBy !== null);
        if (kinds.length === 0 && step.isChanged && isTold() !== true) {
          kinds.push(`${resource}.updated`);
        }
        for (const kind of kinds) {
          const { cause, createdAt, state } = step;
          const times = { createdAt, updatedAt: state?.updatedAt ?? null };
          const happenedAt = step.before === null ? kindHappenedAt(kind, times) : null;
          const ofRow = { fact: null, isSuperseded: false };
          changes.push({ resource, id, kind, cause, happenedAt, step, ...ofRow });
        }
        tellFacts(step);
      }
    }
  }
  tellFacts(null);
  return changes;
}

/**
 * Records in the feed, only once, that a customer was erased. Must follow the write of the rows. Needs its transaction;
 * idempotent.
 */
export async function recordErasure(trx: Knex.Transaction, customerId: string): Promise<void> {
  const told: ShownFact = {
    resource: "customer",
    id: customerId,
    kind: "customer.erased",
    subject: "",
    amount: null,
    currency: null,
    cause: "erasure",
    at: "",
    shownAt: "",
    shownBy: null,
    place: -1,
  };
  if ((await newFacts(trx, [told])).length === 0) return;
  const { resource, id, kind, cause } = told;
  await insertChanges(trx, [
    { resource, id, kind, cause, happenedAt: null, step: null, fact: null, isSuperseded: false },
  ]);
}

const keyOf = (resource: string, id: string): string => `${resource}|${id}`;

/** The refunds that those states show which are new to the history. */
function refundsIn(written: readonly Written[], steps: StepsByKey): ShownFact[] {
  const facts = new Map<string, ShownFact>();
  for (const { resource, recorded } of written) {
    for (const state of recorded) {
      if (state.group === "order") continue;
      for (const found of shownFacts(resource, state, steps)) {
        const known = facts.get(factKey(found));
        if (known === undefined || isTellable(found, known)) facts.set(factKey(found), found);
      }
    }
  }
  return [...facts.values()];
}

/** Pairs the facts that a state shows with the step of its object. */
function shownFacts(resource: Resource, state: GroupState, steps: StepsByKey): ShownFact[] {
  const place = placeOf(resource, state, steps);
  const shownBy = steps.get(keyOf(resource, state.id))?.[place] ?? null;
  const { cause, updatedAt: shownAt } = state;
  return factsOf(state).map((fact) => {
    return { ...fact, cause, at: timeOf(state), shownAt, shownBy, place };
  });
}

/** The place of the step that shows a state; -1: it came late. */
const placeOf = (resource: Resource, state: GroupState, steps: StepsByKey): number =>
  steps.get(keyOf(resource, state.id))?.findIndex(({ shown }) => shown.includes(state)) ?? -1;

/**
 * The disputes and their ends that are not in the feed yet, of orders of which a state shows a dispute, or came late,
 * so that it may divide one. A dispute is known by its opening: by the time of any state in it, or by '' for the first
 * opening that is recorded. More states only divide openings, so in the end each was recorded once, whatever the order
 * of arrival. The locks on the orders' rows let one transaction at a time decide. One statement, or none.
 */
async function newDisputes(
  trx: Knex.Transaction,
  written: readonly Written[],
  steps: StepsByKey,
): Promise<ShownFact[]> {
  const states = new Map<string, GroupState[]>();
  for (const { resource, recorded } of written) {
    for (const state of recorded) {
      if (state.group !== "order") continue;
      if (factsOf(state).length === 0 && placeOf(resource, state, steps) >= 0) continue;
      states.set(state.id, [...(states.get(state.id) ?? []), state]);
    }
  }
  if (states.size === 0) return [];
  const untold = await untoldDisputes(trx, [...states.keys()]);
  return untold.flatMap((dispute): ShownFact[] => {
    const { id, kind, at, firstAt, lastAt, isFirst, isFollowing, isPresent } = dispute;
    const given = states.get(id) ?? [];
    const ofOpening = given
      .filter(({ updatedAt }) => updatedAt >= firstAt && updatedAt <= lastAt)
      .flatMap((state) => shownFacts("order", state, steps));
    // Disputes from before the feed are left out, unless these states divided them.
    if (ofOpening.length === 0 && !isFollowing) return [];
    const subject = isFirst ? "" : at;
    const fact = { resource: "order", id, kind, subject, amount: null, currency: null } as const;
    const [first, ...others] = ofOpening.filter((shown) => shown.kind === kind);
    if (first === undefined) {
      const cause = given[0]?.cause ?? "";
      return [{ ...fact, cause, at, shownAt: at, shownBy: null, place: -1, isPresent }];
    }
    const shown = others.reduce((best, each) => (isTellable(each, best) ? each : best), first);
    return [
      {
        ...shown,
        ...fact,
        isOlder: !isFollowing && ofOpening.every(({ shownAt }) => shownAt > firstAt),
      },
    ];
  });
}

/** A dispute, or its end, that is not in the feed. Times have the fixed form. */
interface UntoldDispute {
  id: string;
  kind: ChangeKind;
  /** When a state first showed it. */
  at: string;
  /** Date of the first state of its opening. */
  firstAt: string;
  lastAt: string;
  /** No earlier opening of the order has this kind. */
  isFirst: boolean;
  /** The first of this kind is in the feed, so this is one more. */
  isFollowing: boolean;
  /** The order's row shows it. */
  isPresent: boolean;
}

async function untoldDisputes(trx: Knex.Transaction, ids: readonly string[]): Promise<UntoldDispute[]> {
  const { rows } = await trx.raw<{ rows: UntoldDispute[] }>(
    `select u.id, u.kind, ${fixedForm("u.at")} as at, ${fixedForm("u.first_at")} as "firstAt",
            ${fixedForm("u.last_at")} as "lastAt", u.is_first as "isFirst", exists (
              select from feed.facts t
              where t.resource = 'order' and t.id = u.id and t.kind = u.kind and t.subject = '') as "isFollowing",
            coalesce(u.opening = u.openings and o.status like 'chargeback%' and u.kind =
              case o.status when 'chargeback_accepted' then 'order.dispute_lost'
                            when 'chargeback_dismissed' then 'order.dispute_won' else 'order.disputed' end, false)
              as "isPresent"
     from (
       select given.id, x.opening, x.openings, x.first_at, x.last_at, k.kind, k.at,
              row_number() over (partition by given.id, k.kind order by x.opening) = 1 as is_first
       from unnest(?::text[]) as given(id)
       cross join lateral mirror.openings_of_order(given.id, null) x
       cross join lateral (
         values ('order.disputed', x.first_at), ('order.dispute_won', x.dismissed_at), ('order.dispute_lost', x.accepted_at)
       ) as k(kind, at)
       where k.at is not null and exists (
         select from mirror.versions v
         where v.resource = 'order' and v.id = given.id and v.data->>'status' like 'chargeback%')
     ) u
     left join mirror.orders o on o.id = u.id
     where not exists (
       select from feed.facts t
       where t.resource = 'order' and t.id = u.id and t.kind = u.kind
         and case when t.subject = '' then u.is_first else t.subject::timestamptz between u.first_at and u.last_at end)
     order by u.id, u.opening, u.at, u.kind = 'order.disputed' desc`,
    [sqlArray(ids)],
  );
  return rows;
}

/** When the refund was made, or the order showed its dispute. An entry of an order may lack times of its own. */
const timeOf = ({ group, columns, updatedAt }: GroupState): string => {
  const { created_at: createdAt } = columns;
  return group !== "order" && typeof createdAt === "string" ? createdAt : updatedAt;
};

const byTime = (a: ShownFact, b: ShownFact): number => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0);

/** Among several states that show a fact, the first that the row has shown counts. */
const isTellable = (found: ShownFact, known: ShownFact): boolean =>
  found.place >= 0 &&
  (known.place < 0 || found.place < known.place || (found.place === known.place && found.shownAt < known.shownAt));

const factKey = ({ resource, id, kind, subject }: Fact): string => `${resource}|${id}|${kind}|${subject}`;

/**
 * Stores the facts that are not in the feed yet, permanently, and returns them. Most transactions show none and need no
 * statement.
 */
async function newFacts(trx: Knex.Transaction, facts: readonly ShownFact[]): Promise<ShownFact[]> {
  if (facts.length === 0) return [];
  const { rows } = await trx.raw<{ rows: { key: string }[] }>(
    `insert into feed.facts (resource, id, kind, subject)
     select * from unnest(?::text[], ?::text[], ?::text[], ?::text[]) as given(resource, id, kind, subject)
     -- Sorted, so that two transactions that show the same facts cannot deadlock.
     order by 1, 2, 3, 4
     on conflict do nothing returning resource || '|' || id || '|' || kind || '|' || subject as key`,
    [
      sqlArray(facts.map(({ resource }) => resource)),
      sqlArray(facts.map(({ id }) => id)),
      sqlArray(facts.map(({ kind }) => kind)),
      sqlArray(facts.map(({ subject }) => subject)),
    ],
  );
  const fresh = new Set(rows.map(({ key }) => key));
  return facts.filter(
    (fact) =>
      fresh.has(factKey(fact)) && (fact.isOlder === false || !isShownBefore(fact, fact.shownBy?.before ?? null)),
  );
}

const changeNumbers = { sequence: "feed.change_numbers", lockClass: 7_255 };

/**
 * Numbers and writes the changes, in one statement. What happened an hour or more before the first event is history: a
 * clock may differ by so much (`clockToleranceMs`), and the first event reports a recent change. After a restore, all
 * that happened before the lost system stopped is history, too (`recordRestore`): that system had already reported it.
 */
async function insertChanges(trx: Knex.Transaction, changes: readonly Change[]): Promise<void> {
  await trx
    .raw(
      `with turn as materialized (
         select ${takeTurn(changeNumbers)}
       )
       insert into feed.changes (seq, resource, id, kind, cause, from_status, to_status, state_group, state_at,
         state_hash, transaction_id, amount, currency, is_superseded)
       select nextval('feed.change_numbers'), g.resource, g.id, g.kind,
         case when g.happened_at < (select inbox.first_event_at()) - make_interval(secs => ${clockToleranceMs / 1_000})
                or coalesce(g.happened_at, g.state_at) <= ${knownUntilSql}
              then 'import' else g.cause end,
         g.from_status, g.to_status, g.state_group, g.state_at, g.state_hash, g.transaction_id, g.amount, g.currency,
         g.is_superseded
       from turn cross join unnest(
         ?::text[], ?::text[], ?::text[], ?::text[], ?::timestamptz[], ?::text[], ?::text[], ?::text[], ?::timestamptz[],
         ?::text[], ?::text[], ?::bigint[], ?::text[], ?::boolean[])
         as g(resource, id, kind, cause, happened_at, from_status, to_status, state_group, state_at, state_hash,
              transaction_id, amount, currency, is_superseded)`,
      [
        sqlArray(changes.map(({ resource }) => resource)),
        sqlArray(changes.map(({ id }) => id)),
        sqlArray(changes.map(({ kind }) => kind)),
        sqlArray(changes.map(({ cause }) => cause)),
        sqlArray(changes.map(({ happenedAt }) => happenedAt)),
        sqlArray(changes.map(({ step }) => step?.before?.["status"] ?? null)),
        sqlArray(changes.map(({ step }) => step?.after["status"] ?? null)),
        sqlArray(changes.map(({ step }) => step?.state?.group ?? null)),
        sqlArray(changes.map(({ step }) => step?.state?.updatedAt ?? null)),
        sqlArray(changes.map(({ step }) => step?.state?.hash ?? null)),
        sqlArray(changes.map(({ fact }) => (fact === null || isDispute(fact) ? null : fact.subject))),
        sqlArray(changes.map(({ fact }) => fact?.amount ?? null)),
        sqlArray(changes.map(({ fact }) => fact?.currency ?? null)),
        sqlArray(changes.map(({ isSuperseded }) => isSuperseded)),
      ],
    )
    .options({ name: "feed-changes" });
}
