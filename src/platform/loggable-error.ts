/** What of an error is for everybody. All else may be anything: a Redis command with its password, a row's values. */
const openFields = [
  "code",
  "severity",
  "table",
  "column",
  "constraint",
  "routine",
  "syscall",
  "address",
  "port",
] as const;

/** Classes of SQLSTATE whose messages quote values: data, constraints, check options, what a function raises. */
const quotesValues = /^(22|23|44|P0)/;

const maxDepth = 5;
/** With all that caused it, at every depth. */
const maxErrors = 20;

/**
 * An error as a log may keep it: what is no error is given back as it is. Of what the server said, nothing that quotes
 * values, which are somebody's data. Of many errors in one, the first. Lengths and secrets are the log's to see to. Pure.
 */
export function loggableError(error: unknown, depth = 0, room = { errors: maxErrors }): unknown {
  if (!(error instanceof Error)) return error;
  room.errors--;
  const source = error as unknown as Record<string, unknown>;
  const open = openFields.flatMap((field) =>
    isPlain(source[field]) ? [[field, source[field]]] : [],
  );
  const message = messageOf(error, source);
  const { stack = "" } = error;
  const isNested = depth < maxDepth;
  const nested = (each: unknown): unknown =>
    room.errors > 0 ? loggableError(each, depth + 1, room) : "[more errors]";
  return {
    type: error.name,
    message,
    ...(Object.fromEntries(open) as Record<string, unknown>),
    stack: `${error.name}: ${message}\n${stack.slice(Math.max(0, stack.search(/^ {4}at /m)))}`,
    ...(error.cause !== undefined && isNested ? { cause: nested(error.cause) } : {}),
    ...(error instanceof AggregateError && isNested
      ? { errors: error.errors.slice(0, maxErrors).map(nested) }
      : {}),
  };
}

const isPlain = (value: unknown): boolean => typeof value === "string" || typeof value === "number";

/** What has a severity, the server said. Knex puts the statement before it. */
function messageOf({ message }: Error, { severity, code }: Record<string, unknown>): string {
  if (severity === undefined) return message;
  const name = `database error ${String(code)}`;
  if (quotesValues.test(String(code))) return name;
  const from = message.lastIndexOf(" - ");
  return `${name}: ${from < 0 ? message : message.slice(from + 3)}`;
}

/** Why something failed, in a few words without values, for what is stored and shown. Pure. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown error";
  const { code, severity } = error as { code?: unknown; severity?: unknown };
  return severity === undefined ? error.name : `database error ${String(code)}`;
}
