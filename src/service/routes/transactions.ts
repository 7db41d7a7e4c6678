import { z } from "zod";

import {
  transactionSchema,
  transactionStatuses,
  transactionTypes,
} from "../resources/transaction.ts";
import { defineEndpoint } from "./endpoint.ts";
import {
  centsRange,
  createdAtQuery,
  expandQuery,
  fieldsQuery,
  listOf,
  pageQuery,
  sortQuery,
} from "./list-query.ts";
import { idParam, noBody, noParams } from "./shared.ts";

const expandable = expandQuery(["customer", "order"]);

export const listTransactions = defineEndpoint({
  name: "listTransactions",
  method: "GET",
  path: "/transactions",
  summary: "List transactions",
  permission: "transactions:read",
  idempotency: "none",
  params: noParams,
  query: pageQuery
    .extend(sortQuery().shape)
    .extend(createdAtQuery.shape)
    .extend(centsRange("amount").shape)
    .extend(expandable.shape)
    .extend(fieldsQuery("transactions").shape)
    .extend({
      customer_id: z.string().optional(),
      order_id: z.string().optional(),
      status: z.enum(transactionStatuses).optional(),
      type: z.enum(transactionTypes).optional(),
    }),
  body: noBody,
  status: 200,
  answer: listOf(transactionSchema),
  errors: [],
});

export const getTransaction = defineEndpoint({
  name: "getTransaction",
  method: "GET",
  path: "/transactions/{id}",
  summary: "Retrieve a transaction",
  permission: "transactions:read",
  idempotency: "none",
  params: idParam,
  query: expandable,
  body: noBody,
  status: 200,
  answer: transactionSchema,
  errors: ["resource_not_found"],
});
