import type { Knex } from "knex";
import { Redis } from "ioredis";

/** Every row of every table of the database as text, by table. Bytes are there as they are and in hex. */
export async function everyRow(db: Knex): Promise<Map<string, string>> {
  const { rows: tables } = await db.raw<{ rows: { name: string }[] }>(
    `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
     where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')
       and not (select relispartition from pg_class where oid = format('%I.%I', table_schema, table_name)::regclass) order by 1`,
  );
  const found = new Map<string, string>();
  for (const { name } of tables) {
    const { rows } = await db.raw<{ rows: { row: string }[] }>(`select t::text as row from ${name} t`);
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

/**
 * The markers that a text holds in some form: as they are, in any capitals, encoded for URLs, in hex, base64 or as
 * escapes. One pass for all of them: a search for each form of each marker took most of a file's time.
 */
export function heldIn(text: string, markers: ReadonlySet<string>): string[] {
  const exact = new FormIndex([...markers].map((marker) => [marker, base64Of(marker)]));
  const folded = new FormIndex([...markers].map((marker) => [marker, foldedForms(marker)]));
  const held = new Set([...exact.foundIn(text), ...folded.foundIn(text.toLowerCase())]);
  return [...markers].filter((marker) => held.has(marker));
}

/** The marker's base64 at any offset in the encoded text, without the ends that depend on its neighbours. */
function base64Of(marker: string): string[] {
  const bytes = Buffer.from(marker);
  return [0, 1, 2].map((before) =>
    Buffer.concat([Buffer.alloc(before), bytes])
      .toString("base64")
      .slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6)),
  );
}

function foldedForms(marker: string): string[] {
  const escaped = Array.from(marker)
    .map((each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");
  const hex = Buffer.from(marker).toString("hex");
  return [marker, encodeURIComponent(marker), escaped, hex].map((form) => form.toLowerCase());
}

/** Forms by their first characters, so that a text is read once for any number of forms. */
class FormIndex {
  readonly #byStart = new Map<string, { form: string; marker: string }[]>();
  /** Possible starts, by a sum of their characters: it rules out nearly every place of a text. */
  readonly #maybe = new Uint8Array(1 << 16);

  constructor(formsOf: readonly (readonly [marker: string, forms: readonly string[]])[]) {
    for (const [marker, forms] of formsOf) {
      for (const form of forms) {
        if (form.length < startLength) throw new RangeError(`${form} is too short to look for`);
        const start = form.slice(0, startLength);
        const known = this.#byStart.get(start);
        if (known === undefined) this.#byStart.set(start, [{ form, marker }]);
        else known.push({ form, marker });
        this.#maybe[slotOf(start, 0)] = 1;
      }
    }
  }

  foundIn(text: string): Set<string> {
    const found = new Set<string>();
    for (let at = 0; at + startLength <= text.length; at++) {
      if (this.#maybe[slotOf(text, at)] === 0) continue;
      for (const { form, marker } of this.#byStart.get(text.slice(at, at + startLength)) ?? []) {
        if (text.startsWith(form, at)) found.add(marker);
      }
    }
    return found;
  }
}

const startLength = 4;

const slotOf = (text: string, at: number): number =>
  ((text.charCodeAt(at) << 9) ^
    (text.charCodeAt(at + 1) << 6) ^
    (text.charCodeAt(at + 2) << 3) ^
    text.charCodeAt(at + 3)) &
  0xffff;
