/** Errors of our own code: an event that nobody thought of. */
const ownErrors = [TypeError, RangeError, ReferenceError, SyntaxError];

/**
 * Classes of SQLSTATE that say nothing about an event: connection, transaction state, authorisation, catalog,
 * rollback, resources, operator, system, and a plan that a migration made old. A statement or a transaction that
 * was cut off for its time (57014, 25P04) is not among them: it may be the event that takes so long.
 */
const notTheEvent = /^(08|25(?!P04)|28|3D|40|53|58|57P|55P03|0A000)/;

/**
 * Whether the event may be what made its transaction fail, so that it must not be tried for ever. Where the
 * database does not answer or something else is amiss, every event would fail, and none is counted.
 */
export function isEventFault(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, severity } = error as { code?: unknown; severity?: unknown };
  // What has a severity, the server said. A lost connection is an Error of the driver, with or without a code.
  if (severity !== undefined) return !notTheEvent.test(String(code));
  return ownErrors.some((own) => error instanceof own);
}
