import { request } from "undici";
import { testKey } from "../src/parts/sandbox/engine/keys.ts";
import type { Benchmark, BenchResult } from "./benchmark.ts";
import { postOrders } from "./support/order-load.ts";
import { placement } from "./support/pinning.ts";
import { residentMegabytes } from "./support/resident-memory.ts";
import { median } from "./support/statistics.ts";
import { startOtherServer } from "./support/tallyhook.ts";

const wantedPerSecond = 3_000;
const wantedListMs = 5;
const wantedGigabytes = 3;
/** Repeats of each list request. The median counts. */
const repeats = 7;
const ordersPerPart = 20_000;

/** (g) The sandbox with a growing number of orders: orders a second, pages of 100, memory. */
export const sandbox: Benchmark = {
  name: "sandbox",
  title: "The sandbox at 10,000 to 1,000,000 orders: POST /orders a second, pages of 100, memory",
  async run(stand, options, say) {
    const sizes = options.seconds >= 1 ? [10_000, 100_000, 1_000_000] : [200, 400];
    const server = await startOtherServer(
      { directory: stand.directory, cpus: placement.all, profile: options.profile },
      { name: "sandbox", source: new URL("servers/sandbox.ts", import.meta.url) },
    );
    const { port } = server;
    const rows: Measured[] = [];
    try {
      for (const size of sizes) {
        say(`${size} orders …`);
        await fill(port, size);
        const body = await orderBody(port);
        const rates: number[] = [];
        for (let round = 0; round < Math.min(options.rounds, 3); round++) {
          rates.push(await postOrders({ port, apiKey: testKey, body }, Math.min(options.seconds, 3)));
        }
        rows.push({
          orders: size,
          perSecond: median(rates),
          walks: await measureLists(port, [...walks, ...(await ownWalks(port))], byCreation),
          scans: await measureLists(port, scans, [...byCreation, ...byChange]),
          megabytes: residentMegabytes(server.process.pid) ?? Number.NaN,
        });
      }
    } finally {
      await server.process.stop();
    }
    return report(rows);
  },
};

interface Measured {
  orders: number;
  perSecond: number;
  walks: Pages;
  scans: Pages;
  megabytes: number;
}

interface Pages {
  usualMs: number;
  worstMs: number;
  worst: string;
}

function report(measured: readonly Measured[]): BenchResult {
  const largest = measured.at(-1);
  if (largest === undefined) throw new Error("nothing was measured");
  const { orders, perSecond, walks, megabytes } = largest;
  const at = `at ${orders} orders`;
  return {
    rows: measured.map((one) => ({
      orders: one.orders,
      "POST /orders a second": Math.round(one.perSecond),
      "page of a walk, median ms": one.walks.usualMs.toFixed(2),
      "slowest kind ms": one.walks.worstMs.toFixed(2),
      which: one.walks.worst,
      "scanned page, median ms": one.scans.usualMs.toFixed(2),
      "slowest scan ms": one.scans.worstMs.toFixed(2),
      scan: one.scans.worst,
      "resident MB": Math.round(one.megabytes),
    })),
    targets: [
      {
        what: `POST /orders ${at}`,
        wanted: `≥ ${wantedPerSecond}/s`,
        measured: `${Math.round(perSecond)}/s`,
        reached: perSecond >= wantedPerSecond,
      },
      {
        what: `slowest kind of page of 100 along creation ${at}`,
        wanted: `< ${wantedListMs} ms`,
        measured: `${walks.worstMs.toFixed(2)} ms`,
        reached: walks.worstMs < wantedListMs,
      },
      {
        what: `memory ${at}`,
        wanted: `< ${wantedGigabytes} GB`,
        measured: `${(megabytes / 1000).toFixed(2)} GB`,
        reached: megabytes < wantedGigabytes * 1000,
      },
    ],
    notes: [
      `without delivery; every kind of page (filter, order, direction, cursor) ${repeats} times, its median; the client's time counts`,
    ],
  };
}

const byCreation = ["created_at[desc]", "created_at[asc]"];
const byChange = ["updated_at[desc]", "updated_at[asc]"];

type List = readonly [list: string, query: string];

/** Lists read in order of creation until the page is full, as clients do. */
const walks: readonly List[] = [
  ["orders", ""],
  ["orders", "status=succeeded"],
  ["orders", "status=failed"],
  ["orders", "expand=customer,items,transactions"],
  ["transactions", ""],
  ["transactions", "status=chargeback"],
  ["transactions", "type=refund"],
  ["customers", ""],
  ["customers", "deleted=true"],
];

/** Filters that may scan every row for one page, with amounts as in the traffic. */
const scans: readonly List[] = [
  ["orders", "status=failed,refunded,partially_refunded"],
  ["orders", "total[gte]=3000"],
  ["orders", "total[gte]=5001&total[lte]=5010"],
  ["orders", "total[gte]=900000000"],
  ["orders", "status=partially_refunded&total[lte]=2000"],
  ["transactions", "type=refund&status=failed"],
  ["transactions", "amount[lte]=100"],
  ["customers", "q=grace%20liskov"],
  ["customers", "q=g"],
  ["customers", "q=nobody"],
];

async function measureLists(port: number, lists: readonly List[], sorts: readonly string[]): Promise<Pages> {
  const all: { ms: number; path: string }[] = [];
  for (const [list, filter] of lists) {
    for (const sort of sorts) {
      const base = `/v1/${list}?limit=100&sort=${sort}&${filter}`;
      for (const cursor of ["", ...(await cursorsOf(port, list))]) {
        const path = `${base}${cursor}`;
        const times: number[] = [];
        for (let i = 0; i < repeats; i++) times.push(await timeOf(port, path));
        all.push({ ms: median(times), path });
      }
    }
  }
  const worst = all.reduce((a, b) => (b.ms > a.ms ? b : a));
  return {
    usualMs: median(all.map(({ ms }) => ms)),
    worstMs: worst.ms,
    worst: worst.path.replace(/^\/v1\//, "").replaceAll(/=[0-9a-f-]{36}/g, "=…"),
  };
}

/** In small parts: the generator holds a whole history in memory, which would distort the sandbox's own. */
async function fill(port: number, size: number): Promise<void> {
  for (;;) {
    const have = (await get(port, "/_sandbox")).counts.test.orders as number;
    const orders = Math.min(size - have, ordersPerPart);
    if (orders <= 0) return;
    await control(port, "/traffic", { orders, subscriptions: 0, days: 2, seed: have });
  }
}

/** Lists filtered by one customer, one day and half of all time, around the middle of the data. */
async function ownWalks(port: number): Promise<List[]> {
  const order = await middleOf(port, "orders");
  const day = order.created_at.slice(0, 10);
  return [
    ["orders", `customer_id=${order.customer_id}`],
    ["orders", `created_at[gte]=${day}T00:00:00Z&created_at[lt]=${day}T01:00:00Z`],
    ["orders", `created_at[lt]=${day}`],
    ["orders", `created_at[gte]=${day}`],
    ["transactions", `customer_id=${order.customer_id}`],
    ["transactions", `order_id=${order.id}`],
    ["transactions", `created_at[lt]=${day}&status=failed`],
  ];
}

async function cursorsOf(port: number, list: string): Promise<string[]> {
  const { id } = await middleOf(port, list);
  return [`&starting_after=${id}`, `&ending_before=${id}`];
}

interface Listed {
  id: string;
  created_at: string;
  customer_id: string;
}

async function middleOf(port: number, list: string): Promise<Listed> {
  const [newest] = (await get(port, `/v1/${list}?limit=1`)).data as Listed[];
  const [oldest] = (await get(port, `/v1/${list}?limit=1&sort=created_at[asc]`)).data as Listed[];
  if (newest === undefined || oldest === undefined) throw new Error("nothing is listed");
  const middle = (Date.parse(newest.created_at) + Date.parse(oldest.created_at)) / 2;
  const before = new Date(middle).toISOString();
  const [found] = (await get(port, `/v1/${list}?limit=1&created_at[lt]=${before}`)).data as Listed[];
  return found ?? oldest;
}

/** A customer with a card buys two of a product. */
async function orderBody(port: number): Promise<object> {
  const [product] = (await get(port, "/v1/products?limit=1")).data as { id: string }[];
  const email = `bench-${performance.now()}@example.test`;
  const answer = await request(`http://127.0.0.1:${port}/v1/customers`, {
    method: "POST",
    headers: { ...headersOf(testKey), "content-type": "application/json" },
    body: JSON.stringify({ email, svc_gateway_customer_vault_id: "card_visa" }),
  });
  const customer = (await answer.body.json()) as { id: string; default_payment_method_id: string };
  return {
    customer_id: customer.id,
    payment_method_id: customer.default_payment_method_id,
    items: [{ product_id: product?.id, quantity: 2 }],
  };
}

async function timeOf(port: number, path: string): Promise<number> {
  const startMs = performance.now();
  const answer = await request(`http://127.0.0.1:${port}${path}`, { headers: headersOf(testKey) });
  await answer.body.arrayBuffer();
  if (answer.statusCode !== 200) throw new Error(`${path} answered ${answer.statusCode}`);
  return performance.now() - startMs;
}

const headersOf = (key: string) => ({ authorization: `Bearer ${key}` });

/** The benchmark knows the shape of these bodies. */
// oxlint-disable-next-line typescript/no-explicit-any -- answers of two interfaces are looked into freely
type Json = any;

async function get(port: number, path: string): Promise<Json> {
  const headers = path.startsWith("/v1") ? headersOf(testKey) : {};
  const answer = await request(`http://127.0.0.1:${port}${path}`, { headers });
  return answer.body.json();
}

async function control(port: number, path: string, body: object): Promise<void> {
  const answer = await request(`http://127.0.0.1:${port}/_sandbox${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const text = await answer.body.text();
  if (answer.statusCode !== 200) throw new Error(text);
}
