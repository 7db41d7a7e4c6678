import * as routes from "../../service/routes/transactions.ts";
import { plainAnswer } from "../answer.ts";
import { by, listAnswer } from "../http/list.ts";
import type { Mounted } from "../http/mount.ts";
import { mounted } from "../http/mount.ts";
import { expandedTransaction } from "../wire/transaction.ts";
import { find } from "./find.ts";

const grouped = ["customer_id", "order_id", "status", "type"] as const;

const list = mounted(routes.listTransactions, (space, { query }) => {
  const least = query["amount[gte]"] ?? 0;
  const most = query["amount[lte]"] ?? Infinity;
  const anyOf = Object.fromEntries(
    grouped.flatMap((field) => {
      const value = query[field];
      return value === undefined ? [] : [[field, [value]]];
    }),
  );
  return listAnswer(space, space.transactions, query, {
    url: "/v1/transactions",
    show: (transaction) => expandedTransaction(space, transaction, query.expand),
    sorts: { updated_at: by((transaction) => transaction.updated_at) },
    anyOf,
    test: (transaction) => transaction.amount >= least && transaction.amount <= most,
    fields: query["fields[transactions]"],
  });
});

const retrieve = mounted(routes.getTransaction, (space, { params, query }, state) => {
  const transaction = find(state, space, "transactions", params.id);
  return plainAnswer(200, expandedTransaction(space, transaction, query.expand));
});

export const transactionEndpoints: readonly Mounted[] = [list, retrieve];
