import { tallyhook } from "../command-line.ts";
import { ConfigurationError } from "../errors.ts";

/** The target of a connection as it may be shown: without the password. */
export interface ConnectionTarget {
  host: string;
  port: number;
  user: string;
  database: string;
}

/**
 * Explains in one or two sentences why a connection failed and what to do. Decides by the error's code (a system code,
 * an SQLSTATE or one of OpenSSL), never by its text.
 */
export function explainConnectionError(error: unknown, target: ConnectionTarget): string {
  const { host, port, user, database } = target;
  const at = `${host}:${port}`;
  const code = errorCode(error);
  switch (code) {
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `the host "${host}" cannot be found. Check its spelling and the name server.`;
    case "ECONNREFUSED":
      return `nothing listens on ${at}. Check host and port, and that PostgreSQL is running.`;
    case "EHOSTUNREACH":
    case "ENETUNREACH":
    case "EADDRNOTAVAIL":
      return `there is no route to ${at}. Check the host and the network.`;
    case "ETIMEDOUT":
      return `${at} does not answer. Check the host, the port and firewalls.`;
    case "ECONNRESET":
    case "EPIPE":
      return `${at} closed the connection immediately. Check that it is PostgreSQL and not another service.`;
    case "ENOENT":
    case "EACCES":
      return `the socket ${host} cannot be opened (${code}). Check the path, and that PostgreSQL is running.`;
    case "28P01":
    case "28000":
      return `PostgreSQL on ${at} refuses the user "${user}". Check user name, password and pg_hba.conf.`;
    case "3D000":
      return `PostgreSQL on ${at} has no database "${database}". Create it, or check the name.`;
    case "42501":
      return `the user "${user}" may not connect to the database "${database}" on ${at}. Grant CONNECT.`;
    case "53300":
      return `PostgreSQL on ${at} has no free connection. Raise max_connections, or close some.`;
    case "42704":
      return `PostgreSQL on ${at} refuses the settings that a connection brings (${code}). It is older than 15.`;
    case "08P01":
      return (
        `a pooler on ${at} refuses the connection (${code}); its log says why. One that pools by session must ignore ` +
        '"options" at the start; for one that pools by transaction, set DATABASE_DIRECT_URL (docs/operations.md, ' +
        '"Behind a pooler"). It also refuses unknown users and databases, and more clients than it may have.'
      );
    case "57P03":
      return `PostgreSQL on ${at} is starting up, shutting down or recovering. Try again shortly.`;
    case "DEPTH_ZERO_SELF_SIGNED_CERT":
    case "SELF_SIGNED_CERT_IN_CHAIN":
    case "UNABLE_TO_VERIFY_LEAF_SIGNATURE":
    case "UNABLE_TO_GET_ISSUER_CERT_LOCALLY":
    case "ERR_TLS_CERT_ALTNAME_INVALID":
    case "CERT_HAS_EXPIRED":
      return `the certificate of ${at} is not trusted (${code}). Add sslrootcert=<file> to the URL.`;
    default:
      return `${at} did not behave as a PostgreSQL server should (${code ?? messageOf(error)}).`;
  }
}

/** The code of an error or, where several addresses were tried, of the first that has one. */
export function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code } = error as NodeJS.ErrnoException;
  if (code !== undefined) return code;
  if (error instanceof AggregateError) {
    return error.errors.map(errorCode).find((inner) => inner !== undefined);
  }
  return undefined;
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Classes of SQLSTATE: connection, resources, operator intervention (a shutdown, a start), system errors. */
const outageClasses: readonly string[] = ["08", "53", "57", "58"];

/**
 * True for errors that end when the server is back and do not come from the statement: no connection, a restart, no
 * resources.
 */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = errorCode(error);
  if (code === undefined) {
    // The driver's broken connection and Knex' full pool have no code; programming errors are of other classes.
    return error.name === "Error" || error.name === "KnexTimeoutError";
  }
  // An SQLSTATE has five characters, as some system codes have (EPIPE). Every system code is an outage.
  const isSqlState = /^[0-9A-Z]{5}$/.test(code) && !/^E[A-Z]{4}$/.test(code);
  return !isSqlState || outageClasses.includes(code.slice(0, 2));
}

/**
 * The error to show to a person when the login lacks a privilege or may only read; any other error is returned as it
 * is. Leaves out PostgreSQL's message: Knex puts the statement with its values in front of it.
 */
export function withRoleAdvice(error: unknown): unknown {
  const code = errorCode(error);
  if (code === "42501") {
    return new ConfigurationError(
      "The role of DATABASE_URL lacks a privilege that this needs (42501). Log in as the role that owns the " +
        "database and migrated it, or as the role that runs this; where each process has a role, run the SQL of " +
        `"${tallyhook("roles --sql")}" again after a migrate (docs/operations.md, "Database roles").`,
      { cause: error },
    );
  }
  if (code === "25006") {
    return new ConfigurationError(
      "The database of DATABASE_URL is read-only (25006): it is a standby, or default_transaction_read_only is on. " +
        `"${tallyhook("doctor")}" says which.`,
      { cause: error },
    );
  }
  return error;
}

/** Whether the server would refuse the same values anywhere: data exceptions (22) and limits of the program (54). */
export const refusesValues = (error: unknown): boolean => /^(22|54)[0-9A-Z]{3}$/.test(errorCode(error) ?? "");

/**
 * Whether the server refused a row for its content: its values, a constraint (23, 44), or a trigger that raised an
 * exception (P0). The same statement without that row may be taken.
 */
export const refusesRow = (error: unknown): boolean =>
  refusesValues(error) || /^(23|44|P0)[0-9A-Z]{3}$/.test(errorCode(error) ?? "");
