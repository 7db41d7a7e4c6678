/** Errors of our own code: an event that nobody thought of. */
const ownErrors = [TypeError, RangeError, ReferenceError, SyntaxError];

/**
 * Classes of SQLSTATE that say nothing about an event: connection, transaction state, authorisation, catalog,
 * rollback, resources, operator, system, and a plan that a migration made old. A statement that was cancelled
 * for its time (57014) is not among them: it may be the event that takes so long.
 */
const notTheEvent = /^(08|25|28|3D|40|53|58|57P|55P03|0A000)/;

/**
 * Whether the event may be what made its transaction fail, so that it must not be tried for ever. Where the
 * database does not answer or something else is amiss, every event would fail, and none is counted.
 */
export function isEventFault(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  if (typeof code === "string" && /^[0-9A-Z]{5}$/.test(code)) return !notTheEvent.test(code);
  // The driver reports a lost connection as an Error without a code of the server.
  return ownErrors.some((own) => error instanceof own);
}

/** What of an error may be logged: the database quotes values, and values are somebody's data. */
export function withoutValues(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { name: "unknown error" };
  const { code, severity, table, column, constraint, routine } = error as unknown as Record<
    string,
    unknown
  >;
  if (severity === undefined) return { name: error.name, code, stack: error.stack };
  return { name: error.name, code, table, column, constraint, routine };
}

/** A short reason without values. */
export function reasonOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  if (typeof code === "string") return `database error ${code}`;
  return error instanceof Error ? error.name : "unknown error";
}
