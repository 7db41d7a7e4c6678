import { z } from "zod";
import { customerSchema } from "../service/resources/customer.ts";
import { canonicalObject } from "./canonical.ts";
import { textColumn, timeColumn } from "./columns.ts";
import { groupState, readObject } from "./decode.ts";
import type { Decoded, GroupState, Observation } from "./observation.ts";
import type { MirrorTable } from "./table.ts";
import { seenUntil, versionOf } from "./version.ts";

/**
 * A customer and its absence: the service deletes softly (`deleted: true`) or for good (404). A tombstone of
 * the second kind yields to a later look that shows the customer.
 */
export const customerTable: MirrorTable = {
  name: "customers",
  groups: {
    customer: {
      versionColumn: "version",
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
        data: "jsonb",
        seen_until: "text",
        source_updated_at: "timestamptz",
        content_hash: "text",
      },
    },
    "customer.absence": { versionColumn: "absent_version", columns: {} },
  },
  computed: {
    deleted_at: (row) =>
      `case when ${row("deleted")} then ${row("source_updated_at")}
            when left(${row("absent_version")}, 27) > ${row("seen_until")}
            then left(${row("absent_version")}, 27)::timestamptz end`,
  },
};

const required = z.looseObject(customerSchema.pick({ id: true, created_at: true }).shape);
const notOwn = new Set(["payment_methods", "subscriptions"]);

export function decodeCustomer(observation: Observation): Decoded {
  const read = readObject(required, observation);
  if (!read.ok) return read;
  const { id, updatedAt } = read;
  const content = canonicalObject(observation.object, notOwn);
  const deleted = content["deleted"] === true;
  const group = { group: "customer", id, updatedAt, rank: deleted ? 9 : 0, content };
  const state = groupState(observation, group, {});
  const columns = {
    email: textColumn(content, "email"),
    first_name: textColumn(content, "first_name"),
    last_name: textColumn(content, "last_name"),
    phone: textColumn(content, "phone"),
    company: textColumn(content, "company"),
    default_payment_method_id: textColumn(content, "default_payment_method_id"),
    created_at: timeColumn(content, "created_at"),
    updated_at: updatedAt,
    deleted,
    data: content,
    seen_until: seenUntil({ ...state, rank: group.rank }),
    source_updated_at: updatedAt,
    content_hash: state.hash,
  };
  return { ok: true, id, states: [{ ...state, columns }] };
}

/** The service did not know the customer, twice, a grace apart. */
export function customerAbsence(id: string, observedAt: string, cause: string): GroupState {
  const content = { absent: true };
  const version = versionOf({ updatedAt: observedAt, observedAt: null, rank: 0, hash: "" });
  return {
    group: "customer.absence",
    id,
    version,
    updatedAt: observedAt,
    observedAt,
    hash: "absent",
    content,
    columns: {},
    cause,
  };
}
