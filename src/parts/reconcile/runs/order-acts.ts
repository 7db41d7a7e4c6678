import type { Knex } from "knex";
import { type Act, ActRefused, outdated, recordOf } from "../../../app/people/act.ts";
import { type Field, flag, oneOf, optional, reference } from "../../../app/people/fields.ts";
import { type LocalMinute, instantsOf } from "../../../platform/local-time.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import {
  type OrderTakers,
  type OrderedKind,
  lastOrder,
  orderRun,
  orderTakers,
  orderedKinds,
  withdrawOrder,
} from "./run-orders.ts";

/** A minute of the deployment's wall clock. */
const localMinute: Field<LocalMinute> = {
  read(typed) {
    const [year, month, day, hour, minute] =
      /^([12]\d{3})-(\d\d)-(\d\d)T(\d\d):(\d\d)/.exec(typed)?.slice(1).map(Number) ?? [];
    return minute === undefined ? undefined : ({ year, month, day, hour, minute } as LocalMinute);
  },
  wanted: "a time such as 2026-11-03T14:00",
};

interface OrderInput {
  kind: OrderedKind;
  /** `from` and `to`: for a range. */
  from: LocalMinute | null;
  to: LocalMinute | null;
  reportOnly: boolean;
}

/** A worker begins a run within seconds. It is decided on the number of the order before it. */
export const ordering: Act<{ db: Knex; timeZone: string }, OrderInput, OrderTakers> = {
  name: "run.ordered",
  permission: "reconcile:run",
  fields: {
    kind: oneOf(orderedKinds),
    from: optional(localMinute),
    to: optional(localMinute),
    reportOnly: flag,
  },
  async run({ db, timeZone }, call) {
    const { kind, from, to, reportOnly } = call.input;
    const instant = (local: LocalMinute | null): Date | null =>
      local === null || kind !== "range" ? null : (instantsOf(local, timeZone)[0] ?? null);
    const [rangeFrom, rangeTo] = [instant(from), instant(to)];
    if (kind === "range" && rangeFrom === null && rangeTo === null) {
      throw new ActRefused("invalid", "Give at least one of the two times: from, or before.");
    }
    if (rangeFrom !== null && rangeTo !== null && rangeFrom >= rangeTo) {
      throw new ActRefused("invalid", "The first time must be before the second.");
    }
    await inTransaction(db, async (trx) => {
      const last = await lastOrder(trx);
      const isCurrent = call.decidedOn === null || call.decidedOn === String(last?.id ?? 0);
      const order = { kind, rangeFrom, rangeTo, reportOnly };
      const made = isCurrent ? await orderRun(trx, { ...order, orderedBy: call.actor.name }) : null;
      if (made === null) throw outdated("The last order", last);
      const subject = { kind: "run-order", id: String(made.id) };
      await recordOf(ordering, call)(trx, { subject, after: order });
    });
    return orderTakers(db);
  },
};

/** Ends an order before its run begins. */
export const withdrawing: Act<{ db: Knex }, { order: string }, null> = {
  name: "run.withdrawn",
  permission: "reconcile:run",
  fields: { order: reference },
  run: ({ db }, call) =>
    inTransaction(db, async (trx) => {
      const { order: id } = call.input;
      const done = /^\d{1,15}$/.test(id) ? await withdrawOrder(trx, Number(id)) : null;
      if (done === null) throw new ActRefused("unknown", `There is no order "${id}".`);
      if (done.outcome === "begun") {
        const message = `Run ${done.run} has already begun for this order, so it was not taken back.`;
        throw new ActRefused("hindered", message, { now: { run: done.run } });
      }
      if (done.outcome === "ended") throw new ActRefused("hindered", ends[done.as]);
      await recordOf(withdrawing, call)(trx, { subject: { kind: "run-order", id } });
      return null;
    }),
};

/** Why an order that has ended cannot be withdrawn. */
const ends = {
  done: "The run of this order has ended, so it was not taken back.",
  failed: "The run of this order has failed, so there is nothing to take back.",
  withdrawn: "This order was taken back before. No run begins for it.",
} as const;
