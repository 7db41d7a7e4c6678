import type { Knex } from "knex";
import { Redis } from "ioredis";

/** Every row of every table of the database as text, by table. Bytes are there as they are and in hex. */
export async function everyRow(db: Knex): Promise<Map<string, string>> {
  const { rows: tables } = await db.raw<{ rows: { name: string }[] }>(
    `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
     where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema') order by 1`,
  );
  const found = new Map<string, string>();
  for (const { name } of tables) {
    const { rows } = await db.raw<{ rows: { row: string }[] }>(
      `select t::text as row from ${name} t`,
    );
    const text = rows.map(({ row }) => row).join("\n");
    const bytes = [...text.matchAll(/\\+x([0-9a-f]+)/g)].map(([, hex = ""]) =>
      Buffer.from(hex, "hex").toString("latin1"),
    );
    found.set(name, [text, ...bytes].join("\n"));
  }
  return found;
}

/** Every key of a Redis with all that it holds. */
export async function everyKey(url: string): Promise<string> {
  const redis = new Redis(url);
  try {
    const keys = await redis.keys("*");
    const values = await Promise.all(keys.map((key) => valueOf(redis, key)));
    return keys.map((key, n) => `${key}: ${JSON.stringify(values[n])}`).join("\n");
  } finally {
    redis.disconnect();
  }
}

async function valueOf(redis: Redis, key: string): Promise<unknown> {
  switch (await redis.type(key)) {
    case "hash":
      return redis.hgetall(key);
    case "list":
      return redis.lrange(key, 0, -1);
    case "set":
      return redis.smembers(key);
    case "zset":
      return redis.zrange(key, "0", "-1", "WITHSCORES");
    case "stream":
      return redis.xrange(key, "-", "+");
    default:
      return redis.get(key);
  }
}

/** Whether a text holds another in some form: as it is, in any capitals, encoded for URLs, in hex, base64 or as escapes. */
export function holds(text: string, lower: string, marker: string): boolean {
  const bytes = Buffer.from(marker);
  const base64 = [0, 1, 2].map((before) =>
    Buffer.concat([Buffer.alloc(before), bytes])
      .toString("base64")
      .slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6)),
  );
  const escaped = Array.from(marker)
    .map((each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");
  return (
    base64.some((form) => text.includes(form)) ||
    [marker, encodeURIComponent(marker), escaped, bytes.toString("hex")].some((form) =>
      lower.includes(form.toLowerCase()),
    )
  );
}
