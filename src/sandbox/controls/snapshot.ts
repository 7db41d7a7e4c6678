import { Readable } from "node:stream";

import type Router from "@koa/router";

import type { Space } from "../space.ts";
import { customerBody, paymentMethodBody } from "../wire/customer.ts";
import { orderBody } from "../wire/order.ts";
import { productBody } from "../wire/product.ts";
import { expandedSubscription } from "../wire/subscription.ts";
import { transactionBody } from "../wire/transaction.ts";
import { webhookEndpointBody } from "../wire/webhook-endpoint.ts";
import type { ControlDeps } from "./control.ts";
import { addControl } from "./control.ts";
import { modeQuery, nothing } from "./fields.ts";
import { clockBody } from "./overview.ts";

/**
 * `GET /_sandbox/snapshot`: the state of one environment, every object as its own GET shows it, in order of creation. Streamed, since
 * a large one is longer than a string can be; it is one moment all the same, since records never change.
 */
export function addSnapshot(router: Router, { state }: ControlDeps): void {
  addControl(router, {
    method: "GET",
    path: "/snapshot",
    query: modeQuery,
    body: nothing,
    run({ query: { mode }, ctx }) {
      const current = state();
      const head = { ...clockBody(current), mode, seed: current.seed };
      const space = current.spaces[mode];
      const { hardDeleted } = space;
      const tail = {
        hard_deleted: {
          customers: [...hardDeleted.customers],
          products: [...hardDeleted.products],
        },
      };
      ctx.body = Readable.from(snapshotText(head, sectionsOf(space), tail));
      return undefined;
    },
  });
}

type Section = [name: string, records: unknown[], show: (record: never) => unknown];

function sectionsOf(space: Space): Section[] {
  const nowIso = space.time.iso();
  return [
    section("orders", space.orders.all(), orderBody),
    section("transactions", space.transactions.all(), transactionBody),
    section("subscriptions", space.subscriptions.all(), (subscription) =>
      expandedSubscription(space, subscription, ["cycles"]),
    ),
    section("customers", space.customers.all(), customerBody),
    section("payment_methods", space.paymentMethods.all(), paymentMethodBody),
    section("products", space.products.all(), (product) => productBody(product)),
    section("plans", space.plans.all(), (plan) => plan),
    section("webhook_endpoints", space.webhookEndpoints.all(), (endpoint) =>
      webhookEndpointBody(endpoint, nowIso),
    ),
  ];
}

function section<T>(name: string, records: T[], show: (record: T) => unknown): Section {
  return [name, records, show];
}

const recordsPerChunk = 500;

function* snapshotText(
  head: Readonly<Record<string, unknown>>,
  sections: readonly Section[],
  tail: Readonly<Record<string, unknown>>,
): Generator<string> {
  yield JSON.stringify(head).slice(0, -1);
  for (const [name, records, show] of sections) {
    yield `,${JSON.stringify(name)}:[`;
    for (let from = 0; from < records.length; from += recordsPerChunk) {
      const shown = records
        .slice(from, from + recordsPerChunk)
        .map((record) => JSON.stringify(show(record as never)));
      yield (from === 0 ? "" : ",") + shown.join(",");
    }
    yield "]";
  }
  yield `,${JSON.stringify(tail).slice(1)}`;
}
