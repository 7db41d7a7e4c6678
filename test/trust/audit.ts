import { z } from "zod";

/** What became of a question to the registry. Only `found` fails a run. */
export interface AuditOutcome {
  kind: "clean" | "found" | "not asked";
  says: string;
}

/** npm's codes and HTTP's answers of a registry that cannot be asked: an absent network, a mirror without audits. */
const unreachable =
  /^(?:E(?:NOTFOUND|AI_AGAIN|CONNREFUSED|CONNRESET|TIMEDOUT|HOSTUNREACH|NETUNREACH|NOAUDIT)|ERR_SOCKET_TIMEOUT|E?[45]\d\d)$/;

const failure = z.union([
  z.object({ error: z.object({ code: z.string(), summary: z.string() }) }),
  z.object({ statusCode: z.number(), message: z.string() }),
  // A server that is not there at all: npm prints the system's message alone.
  z.object({ message: z.string().regex(/getaddrinfo|connect E|timeout|network/) }),
]);
const vulnerabilities = z.object({
  vulnerabilities: z.record(z.string(), z.object({ name: z.string(), severity: z.string(), range: z.string() })),
});
const signatures = z.object({
  invalid: z.array(z.object({ name: z.string(), version: z.string() })),
  missing: z.array(z.object({ name: z.string(), version: z.string() })),
});

/** Reads `npm audit --omit=dev --json`. High and critical ones are findings; lower ones are named. Pure. */
export function readVulnerabilities(json: string): AuditOutcome {
  const answer = parsed(json);
  const read = vulnerabilities.safeParse(answer);
  if (!read.success) return notAsked(answer);
  const all = Object.values(read.data.vulnerabilities);
  const grave = all.filter(({ severity }) => severity === "high" || severity === "critical");
  const named = (some: typeof all) =>
    some.map(({ name, severity, range }) => `${name} ${range} (${severity})`).join(", ");
  if (grave.length > 0) return { kind: "found", says: `vulnerable: ${named(grave)}` };
  const lower = all.length > 0 ? `; of lower severity: ${named(all)}` : "";
  return { kind: "clean", says: `no high or critical vulnerability is known${lower}` };
}

/** Reads `npm audit signatures --json`. An invalid signature is a finding; a registry may sign only some. Pure. */
export function readSignatures(json: string): AuditOutcome {
  const answer = parsed(json);
  const read = signatures.safeParse(answer);
  if (!read.success) return notAsked(answer);
  const { invalid, missing } = read.data;
  const named = invalid.map(({ name, version }) => `${name}@${version}`).join(", ");
  if (invalid.length > 0) return { kind: "found", says: `not signed by the registry: ${named}` };
  return {
    kind: "clean",
    says: `no signature is wrong${missing.length > 0 ? `; ${missing.length} packages have none` : ""}`,
  };
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return null;
  }
}

/** What is neither an answer nor a registry that cannot be asked is a finding: it must not pass unseen. */
function notAsked(answer: unknown): AuditOutcome {
  const read = failure.safeParse(answer);
  if (!read.success) return { kind: "found", says: "npm gave an answer that cannot be read" };
  const [code, text] =
    "error" in read.data
      ? [read.data.error.code, read.data.error.summary]
      : "statusCode" in read.data
        ? [String(read.data.statusCode), read.data.message]
        : ["ENOTFOUND", read.data.message];
  // The address of the registry in use is nobody's business.
  const shown = text.split("\n", 1)[0]?.replaceAll(/https?:\/\/\S+/g, "the registry") ?? "";
  return unreachable.test(code)
    ? { kind: "not asked", says: `the registry could not be asked (${code}: ${shown})` }
    : { kind: "found", says: `npm failed (${code}: ${shown})` };
}
