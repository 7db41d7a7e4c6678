import { z } from "zod";
import { customerSchema } from "../../contract/resources/customers.ts";
import { canonicalContent } from "../canonical.ts";
import { type Decoded, type GroupState, type Observation, groupState } from "../snapshot.ts";
import { seenUntil } from "../version.ts";
import {
  type MirrorTable,
  type RowExpression,
  idColumn,
  readObject,
  textColumn,
  timeColumn,
} from "./resource.ts";

/** SQL: the service was last seen not to know the customer. */
export const isAbsent = (row: RowExpression): string =>
  `left(${row("absent_version")}, 27) > ${seenUntil(row("version"))}`;

/**
 * A customer and its absence: the service deletes softly (`deleted: true`) or for good (404). A tombstone of
 * the second kind yields to a later look that shows the customer.
 */
export const customerTable: MirrorTable = {
  name: "customers",
  core: "customer",
  groups: {
    customer: {
      versionColumn: "version",
      contentColumn: "data",
      inHistory: true,
      columns: {
        email: "text",
        first_name: "text",
        last_name: "text",
        phone: "text",
        company: "text",
        default_payment_method_id: "text",
        created_at: "timestamptz",
        updated_at: "timestamptz",
        deleted: "boolean",
      },
    },
    "customer.absence": { versionColumn: "absent_version", inHistory: true, columns: {} },
  },
  computed: {
    deleted_at: (row) =>
      `case when ${row("deleted")} then ${row("source_updated_at")}
            when ${isAbsent(row)}
            then left(${row("absent_version")}, 27)::timestamptz end`,
  },
  shown: {
    deleted_at: (core) => `case when ${core("content")}->'deleted' = 'true' then ${core("at")} end`,
  },
};

const { id, created_at } = customerSchema.shape;
/** Whatever it is, it must be there: what has no e-mail address at all is another kind of object, or thin. */
const email = z.unknown().refine((value) => value !== undefined);
const required = z.object({ id, email, created_at });
const notOwn = new Set(["payment_methods", "subscriptions"]);

export function decodeCustomer(observation: Observation): Decoded {
  const read = readObject(required, observation);
  if (!read.ok) return read;
  const { object } = observation;
  const isDeleted = object["deleted"] === true;
  const group = {
    group: "customer",
    id: read.id,
    updatedAt: read.updatedAt,
    rank: isDeleted ? 9 : 0,
    content: canonicalContent(object, notOwn),
    settledBy: { resource: "customer", id: read.id },
  } as const;
  const state = groupState(observation, group, {
    email: textColumn(object, "email"),
    first_name: textColumn(object, "first_name"),
    last_name: textColumn(object, "last_name"),
    phone: textColumn(object, "phone"),
    company: textColumn(object, "company"),
    default_payment_method_id: idColumn(object, "default_payment_method_id"),
    created_at: timeColumn(object, "created_at"),
    updated_at: read.updatedAt,
    deleted: isDeleted,
  });
  return { ok: true, id: read.id, states: [state], unread: [] };
}

/** The service did not know the customer, twice, a grace apart. `observedAt`: the second answer's `Date`. */
export function customerAbsence(customerId: string, observedAt: string, cause: string): GroupState {
  const group = {
    group: "customer.absence",
    id: customerId,
    updatedAt: observedAt,
    rank: 0,
    content: { json: `{"absent": true}`, isReplaced: false, mayHoldCardNumber: false },
    settledBy: null,
  };
  return groupState({ observedAt, cause }, group, {});
}
