/**
 * The PostgreSQL session settings that decide the meaning of our statements and the form of their results, spelled as
 * PostgreSQL shows them. Server, database and role may each set others, so every connection of ours brings its own, or
 * every transaction does (transaction-pooling.ts).
 *
 * Not here: settings that change how long a statement takes or how much it may use, never its result (timeouts,
 * planner, memory, jit, parallel workers). The operator sets them, and `default_transaction_read_only` too, which is
 * respected. `client_encoding` is the driver's (UTF8); whether a commit survives a crash is decided in pool.ts. Locale
 * formats (`lc_numeric`, …) have no effect: our patterns do not use them.
 */
export const transactionSettings = {
  // The format of times: the driver reads no other, and returns null instead.
  DateStyle: "ISO, MDY",
  IntervalStyle: "postgres",
  // The results of `timestamptz::text` and `::date`.
  TimeZone: "UTC",
  // Before the search path, which would be shown in quotation marks.
  quote_all_identifiers: "off",
  // Where the tables of `migrate` are. Our statements name the schema of every other object.
  search_path: "public",
  // NULL in an array literal is null, not a text of four letters.
  array_nulls: "on",
  bytea_output: "hex",
  // Floating-point numbers in their shortest exact form.
  extra_float_digits: "1",
  // A backslash in a string is a backslash: regular expressions have many.
  standard_conforming_strings: "on",
  backslash_quote: "safe_encoding",
  // Otherwise `x = null` might mean `x is null`.
  transform_null_equals: "off",
  xmloption: "content",
} as const;

/** `transactionSettings`, with those that decide how later transactions begin and when a session ends. */
export const sessionSettings = {
  ...transactionSettings,
  // Code that waits for a lock and then reads again relies on it; a stricter level fails with 40001 on every conflict.
  default_transaction_isolation: "read committed",
  default_transaction_deferrable: "off",
  // A pool's connections are idle by design.
  idle_session_timeout: "0",
} as const;

type Settings = Readonly<Record<string, string>>;

/** Settings of one pool, in addition to those above. */
export interface OwnSettings {
  /** Schema in which unqualified names are looked up: letters and underscores. */
  searchPath?: string;
  /** The server cancels a statement after this time (57014). */
  statementTimeoutMs?: number;
  /** Whether a commit survives a crash of the server. Left out: server, database and role decide. */
  commits?: "durable" | "may be lost";
}

/** Only `off` is changed to durable, since modes that wait for standbys are stronger than `on`. */
const commitModes = {
  durable: "coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on')",
  "may be lost": "'off'",
} as const;

/** A statement that sets a pool's own settings until the session ends. */
export const setInSession = (own: OwnSettings): string => selectOf(own, false);

/**
 * Statements that set everything until their transaction ends. Most are `set local`, which takes a third of the time of
 * `set_config`.
 */
export function setInTransaction({ commits, ...own }: OwnSettings): string {
  const set = Object.entries({ ...transactionSettings, ...ownConstants(own) }).map(
    ([name, value]) => `set local ${name} = ${inSet(name, value)}`,
  );
  return [...set, ...(commits === undefined ? [] : [selectOf({ commits }, true)])].join("; ");
}

const ownConstants = ({ searchPath, statementTimeoutMs }: OwnSettings): Settings => ({
  ...(searchPath === undefined ? {} : { search_path: searchPath }),
  ...(statementTimeoutMs === undefined ? {} : { statement_timeout: String(statementTimeoutMs) }),
});

function selectOf({ commits, ...own }: OwnSettings, isLocal: boolean): string {
  const values = Object.entries(ownConstants(own)).map(([name, value]) => [name, literal(value)]);
  if (commits !== undefined) values.push(["synchronous_commit", commitModes[commits]]);
  return `select ${values.map(([name, value]) => `set_config('${name}', ${value}, ${isLocal})`).join(", ")}`;
}

const literal = (value: string): string => `'${value.replaceAll("'", "''")}'`;

/** The value as `set` takes it: a schema in quotation marks would stay in them. */
const inSet = (name: string, value: string): string => (name === "search_path" ? value : literal(value));

/**
 * A pooler between here and the server. `transaction`: it lends server connections by the transaction. Left out: each
 * connection has a session of its own.
 */
export type Pooling = "transaction";

/**
 * A URL for connecting with these settings. They travel in `options` of the start-up message, so they hold before the
 * first statement, cost no round trip, and come with every new connection. They come after the URL's own options, and
 * win. Not through a pooler that lends by the transaction: it would refuse or drop them, and each transaction brings
 * its own. Never throws, for any URL.
 */
export function withSessionSettings(url: string, pooling?: Pooling, own: OwnSettings = {}): string {
  if (pooling === "transaction") return url;
  const [place = "", query = ""] = splitOnce(url, "?");
  const theirs = new URLSearchParams(query).getAll("options").map(encodeURIComponent);
  const ours = Object.entries({ ...sessionSettings, ...ownConstants(own) }).map(
    ([name, value]) => `-c+${name}=${escaped(value)}`,
  );
  const options = `options=${[...theirs, ...ours].join("+")}`;
  return `${place}?${query === "" ? options : `${query}&${options}`}`;
}

/** A space ends an option unless a backslash precedes it. Lists need no spaces. */
const escaped = (value: string): string => value.replaceAll(", ", ",").replaceAll(" ", "\\+");

function splitOnce(text: string, at: string): string[] {
  const index = text.indexOf(at);
  return index < 0 ? [text] : [text.slice(0, index), text.slice(index + 1)];
}

/** A session's settings as it reports them; input of `problemOfSession`. */
export const readSessionSettings = `
  select current_user as "user", current_database() as database, coalesce(json_object_agg(name, setting), '{}') as settings
  from pg_settings where name = any($1)`;

export interface SessionState {
  user: string;
  database: string;
  settings: Settings;
}

/** Only a superuser may set it, so a connection cannot set it itself. */
const triggersRun = { session_replication_role: "origin" } as const;

/** Settings that a session needs: transactions that bring their own settings need none for later ones. */
export const neededSettings = (pooling?: Pooling): Settings => ({
  ...(pooling === "transaction" ? transactionSettings : sessionSettings),
  ...triggersRun,
});

/**
 * The reason why a session cannot be used, and the remedy, for a person; null where it is usable. A pooler between here
 * and the server may have dropped the connection's settings.
 */
export function problemOfSession({ user, database, settings }: SessionState, needed: Settings): string | null {
  const wrong = Object.entries(needed).filter(([name, value]) => settings[name] !== value);
  const [first] = wrong;
  if (first === undefined) return null;
  const [name, value] = first;
  const is = `the session has ${name} = '${settings[name] ?? ""}' and should have '${value}'`;
  if (name in triggersRun) {
    return `${is}: the triggers that protect the history would not run. Remove the setting from the role ${user} and the database ${database}.`;
  }
  const statements = wrong.map(([wrongName, right]) => {
    const set = `set ${wrongName} = ${inSet(wrongName, right)}`;
    return `alter role "${user}" in database "${database}" ${set};`;
  });
  return (
    `${is}. A connection brings its settings along; something between here and the server, such as a pooler, has dropped ` +
    `them. Set them on the role instead, then make the pooler reconnect (PgBouncer: RECONNECT):\n` +
    statements.join("\n")
  );
}
