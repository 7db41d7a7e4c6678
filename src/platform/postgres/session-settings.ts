/**
 * The settings of a PostgreSQL session that decide what our statements mean and how their answers are written. Server,
 * database and role may each set them otherwise, so every connection of ours brings its own. As PostgreSQL shows them.
 *
 * Not here, since they change how long something takes or how much it may use, never what it says: timeouts, planner,
 * memory, jit, parallel workers. They stay the operator's. So does `default_transaction_read_only`: whoever sets that means
 * it. `client_encoding` is the driver's (UTF8); whether a commit outlives a crash is in pool.ts. Formats of a
 * locale (`lc_numeric`, …) decide nothing: no pattern of ours asks for them.
 */
export const sessionSettings = {
  // How times are written: the driver reads no other form, and gives null instead.
  DateStyle: "ISO, MDY",
  IntervalStyle: "postgres",
  // What `timestamptz::text` and `::date` say.
  TimeZone: "UTC",
  // Where the ledger of migrations is. All else is named with its schema.
  search_path: "public",
  // Whether NULL in the text of an array is null or four letters.
  array_nulls: "on",
  bytea_output: "hex",
  // Floating-point numbers in their shortest exact form.
  extra_float_digits: "1",
  // Whether a backslash in a text is a backslash: regular expressions have many.
  standard_conforming_strings: "on",
  backslash_quote: "safe_encoding",
  quote_all_identifiers: "off",
  // `x = null` is null.
  transform_null_equals: "off",
  xmloption: "content",
  // Locks that are waited for and then read again rely on it; a stricter one fails with 40001 wherever two meet.
  default_transaction_isolation: "read committed",
  default_transaction_deferrable: "off",
  // A pool's connections are idle by design.
  idle_session_timeout: "0",
} as const;

type Settings = Readonly<Record<string, string>>;

/**
 * A URL for connecting with these settings: they travel in `options` of the start-up message, so that they hold before
 * the first statement, cost no round trip, and come back with every new connection. They stand behind options that the URL
 * has already, and win. Never throws, whatever the URL is. Pure.
 */
export function withSessionSettings(url: string): string {
  const [place = "", query = ""] = splitOnce(url, "?");
  const theirs = new URLSearchParams(query).getAll("options").map(encodeURIComponent);
  const ours = Object.entries(sessionSettings).map(
    ([name, value]) => `-c+${name}=${escaped(value)}`,
  );
  const options = `options=${[...theirs, ...ours].join("+")}`;
  return `${place}?${query === "" ? options : `${query}&${options}`}`;
}

/** A space ends an option unless there is a backslash before it. Lists need no spaces. */
const escaped = (value: string): string => value.replaceAll(", ", ",").replaceAll(" ", "\\+");

function splitOnce(text: string, at: string): string[] {
  const index = text.indexOf(at);
  return index < 0 ? [text] : [text.slice(0, index), text.slice(index + 1)];
}

/** What a session has to say of its settings; for `problemOfSession`. */
export const readSessionSettings = `
  select current_user as "user", current_database() as database, coalesce(json_object_agg(name, setting), '{}') as settings
  from pg_settings where name = any($1)`;

export interface SessionState {
  user: string;
  database: string;
  settings: Settings;
}

/** Only a superuser may set it, so no connection can bring its own. */
const triggersRun = { session_replication_role: "origin" } as const;

export const neededSettings = { ...sessionSettings, ...triggersRun };

/**
 * Why a session cannot be used, and what to do, for a person; null where all is as it has to be. A pooler between here
 * and the server may have dropped what the connection brought. Pure.
 */
export function problemOfSession({ user, database, settings }: SessionState): string | null {
  const wrong = Object.entries(neededSettings).filter(([name, value]) => settings[name] !== value);
  const [first] = wrong;
  if (first === undefined) return null;
  const [name, value] = first;
  const is = `the session has ${name} = '${settings[name] ?? ""}' and should have '${value}'`;
  if (name in triggersRun) {
    return `${is}: triggers that keep the history as it is would not run. Take the setting from the role ${user} and the database ${database}.`;
  }
  const statements = wrong.map(([setting, needed]) => {
    const list = setting === "search_path" ? needed : `'${needed}'`;
    return `alter role "${user}" in database "${database}" set ${setting} = ${list};`;
  });
  return (
    `${is}. A connection brings its settings along; something between here and the server, such as a pooler, has dropped ` +
    `them. Give them to the role instead, and let the pooler open its connections anew (PgBouncer: RECONNECT):\n` +
    statements.join("\n")
  );
}
