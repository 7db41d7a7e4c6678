/**
 * The floor of a durable receiver: `bare-koa` with `parse`, and one INSERT of everything that arrived during the last
 * one, before the answers. It keeps bytes, id, type and time in a table of its own and recognises repeats. No deadline,
 * no limit of memory, no split of a refused batch, no wake-up.
 */
import { hash } from "node:crypto";
import { createServer } from "node:http";
import Koa from "koa";
import pg from "pg";
import getRawBody from "raw-body";
import { serve } from "./serve.ts";
import { answer, isAuthentic } from "./verify.ts";

interface Waiting {
  id: string;
  type: string;
  createdAt: string;
  sha256: string;
  raw: Buffer;
  resolve(): void;
  reject(error: unknown): void;
}

const client = new pg.Client({ connectionString: process.env["DATABASE_URL"] });
await client.connect();
await client.query(
  `create table if not exists floor_events (
     sha256 bytea primary key, id text not null, type text not null, created_at timestamptz not null,
     received_at timestamptz not null default now(), raw bytea not null
   )`,
);
await client.query("alter table floor_events alter column raw set storage external");

const insert = {
  name: "insert",
  text: `
    insert into floor_events (sha256, id, type, created_at, raw)
    select decode(sha256, 'hex'), id, type, created_at, substr($1::bytea, starts, length)
    from unnest($2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::int[], $7::int[])
      as i(sha256, id, type, created_at, starts, length)
    on conflict do nothing`,
};

let waiting: Waiting[] = [];
let isFlushing = false;

async function flushAll(): Promise<void> {
  isFlushing = true;
  while (waiting.length > 0) {
    const batch = waiting;
    waiting = [];
    try {
      await client.query({ ...insert, values: valuesOf(batch) });
      for (const { resolve } of batch) resolve();
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
  isFlushing = false;
}

function valuesOf(batch: readonly Waiting[]): unknown[] {
  const starts: number[] = [];
  let next = 1;
  for (const { raw } of batch) {
    starts.push(next);
    next += raw.length;
  }
  return [
    Buffer.concat(batch.map(({ raw }) => raw)),
    `{${batch.map(({ sha256 }) => sha256).join(",")}}`,
    `{"${batch.map(({ id }) => id).join('","')}"}`,
    `{"${batch.map(({ type }) => type).join('","')}"}`,
    `{"${batch.map(({ createdAt }) => createdAt).join('","')}"}`,
    `{${starts.join(",")}}`,
    `{${batch.map(({ raw }) => raw.length).join(",")}}`,
  ];
}

const store = (raw: Buffer, { id, type, created_at: createdAt }: Envelope): Promise<void> =>
  new Promise((resolve, reject) => {
    waiting.push({ id, type, createdAt, raw, sha256: hash("sha256", raw, "hex"), resolve, reject });
    if (!isFlushing) void flushAll();
  });

interface Envelope {
  id: string;
  type: string;
  created_at: string;
}

const app = new Koa();
app.use(async (ctx) => {
  const raw = await getRawBody(ctx.req, {
    length: ctx.req.headers["content-length"] ?? null,
    limit: 1_048_576,
  });
  if (!isAuthentic(ctx.req.rawHeaders, raw)) {
    ctx.status = 401;
    return;
  }
  const envelope = JSON.parse(raw.toString("utf8")) as Envelope;
  await store(raw, envelope);
  ctx.body = { ...answer, id: envelope.id };
});

const handle = app.callback();
serve(createServer((request, response) => void handle(request, response)));
process.on("SIGTERM", () => void client.end());
