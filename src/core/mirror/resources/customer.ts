import { z } from "zod";
import { customerSchema, getCustomer, listCustomers } from "../../contract/resources/customers.ts";
import { canonicalContent } from "../canonical.ts";
import { type Decoded, type GroupState, type Snapshot, groupState } from "../snapshot.ts";
import { shownUntilSql } from "../version.ts";
import {
  type Columns,
  type MirrorResource,
  type RowExpression,
  type Source,
  absentFieldsOf,
  changedAt,
  fieldsOf,
  flag,
  indexed,
  personalText,
  readColumns,
  readObject,
  reference,
  time,
} from "./resource.ts";

declare module "../snapshot.ts" {
  interface ResourceNames {
    customer: true;
  }
}

/** SQL: the last read did not find the customer. */
const isAbsent = (row: RowExpression): string =>
  `left(${row("absent_version")}, 27) > ${shownUntilSql(row("version"))}`;

const core = {
  email: indexed(personalText),
  first_name: personalText,
  last_name: personalText,
  phone: indexed(personalText),
  company: personalText,
  default_payment_method_id: reference,
  created_at: time,
  updated_at: changedAt,
  deleted: flag,
} satisfies Columns;

const absence = "customer.absence";

const rankOfDeletion = ({ deleted }: Source): number => (deleted === true ? 9 : 0);

/**
 * A customer and its absence. The service deletes softly (`deleted: true`) or for good (404). After a 404, a later
 * snapshot of the customer removes the tombstone.
 */
export const customer: MirrorResource = {
  name: "customer",
  table: "customers",
  // `GET /customers` leaves out soft-deleted customers unless asked for them, too.
  service: { list: listCustomers, object: getCustomer, filter: { deleted: "true" } },
  owner: "id",
  groups: {
    customer: {
      versionColumn: "version",
      contentColumn: "data",
      inHistory: true,
      rank: rankOfDeletion,
      columns: core,
    },
    [absence]: {
      versionColumn: "absent_version",
      inHistory: true,
      isImpersonal: true,
      columns: {},
    },
  },
  computed: {
    deleted_at: (row) =>
      `case when ${row("deleted")} then ${row("source_updated_at")}
            when ${isAbsent(row)}
            then left(${row("absent_version")}, 27)::timestamptz end`,
  },
  shown: {
    deleted_at: (shown) => `case when ${shown("content")}->'deleted' = 'true' then ${shown("at")} end`,
  },
  keptOnErasure: { reference: "default_payment_method_id", flag: "deleted absent" },
  absence: { group: absence, isAbsent, state: absentState },
  watched: ["deleted_at"],
  known: { fields: new Set(Object.keys(customerSchema.shape)), codes: {} },
  decode,
};

const { id, created_at } = customerSchema.shape;
/** Must be present, with any value: an object without the key is partial. */
const email = z.unknown().refine((value) => value !== undefined);
const required = z.object({ id, email, created_at });
const notCoreFields = new Set(["payment_methods", "subscriptions"]);
const absentFields = absentFieldsOf(fieldsOf(customerSchema, notCoreFields), core);

function decode(observation: Snapshot): Decoded {
  const read = readObject(required, observation);
  if (!read.ok) return read;
  const { object } = observation;
  const group = {
    group: "customer",
    id: read.id,
    updatedAt: read.updatedAt,
    rank: rankOfDeletion(object),
    content: canonicalContent(object, notCoreFields),
    confirmedBy: { resource: "customer", id: read.id },
    absentFields: absentFields(observation, object),
  } as const;
  const state = groupState(observation, group, readColumns(core, object, read.updatedAt));
  return { ok: true, id: read.id, states: [state], unread: [] };
}

function absentState(customerId: string, observedAt: string, cause: string): GroupState {
  const group = {
    group: absence,
    id: customerId,
    updatedAt: observedAt,
    rank: 0,
    content: { json: `{"absent": true}`, isReplaced: false, mayHoldCardNumber: false },
    confirmedBy: null,
  };
  return groupState({ observedAt, cause }, group, {});
}
