import { createHash } from "node:crypto";
import { counted } from "../../../platform/readable-text.ts";

/** The facts of a close, as text and in this order. Times are UTC with microseconds. */
export interface CloseFacts {
  snapshot: string;
  month: string;
  time_zone: string;
  from: string;
  to: string;
  as_of: string;
  closed_at: string;
  closed_by: string | null;
  /** The person who prepared the month for another to close; null: one person did both. */
  prepared_by: string | null;
  verdict: string;
  /** The reason for closing without a PASS; null if it passed. */
  reason: string | null;
  /** The seal of the close before it; null for the first close. */
  previous_sha256: string | null;
}

const factNames = [
  "snapshot",
  "month",
  "time_zone",
  "from",
  "to",
  "as_of",
  "closed_at",
  "closed_by",
  "prepared_by",
  "verdict",
  "reason",
  "previous_sha256",
] as const satisfies readonly (keyof CloseFacts)[];

/** A part of a frozen close, as lines of text. */
export interface Member {
  /** For example `reports/month-end/rows` or `movements`. */
  name: string;
  lines: number;
  /** Hash of its lines, each with its line break. */
  sha256: string;
}

/** A member that cannot be read as it was frozen. */
export interface BrokenMember {
  name: string;
  /** Reads as a sentence after the name. */
  problem: string;
}

/**
 * The sealed content: the facts of a close, and each member with its hash, so that a difference can be located.
 * docs/finance.md describes the format; docs/verify-close.mjs reads it without this program.
 */
export interface Manifest {
  facts: CloseFacts;
  members: readonly Member[];
}

/** The first version has no `prepared_by`, and is still written where there is none. */
const [oneName, twoNames] = [1, 2] as const;

/** One JSON array a line. */
export function manifestText({ facts, members }: Manifest): string {
  const version = facts.prepared_by === null ? oneName : twoNames;
  const stated = factNames.filter((name) => version === twoNames || name !== "prepared_by");
  const lines = [
    ["tallyhook-close", version],
    ...stated.map((name) => [name, facts[name]]),
    ...members.map(({ name, lines: count, sha256 }) => ["member", name, count, sha256]),
  ];
  return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
}

/**
 * The members that a manifest names. The hash of the text must have been verified: it throws if the text is not a
 * manifest.
 */
export function membersOf(manifest: string): Member[] {
  return manifest
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as unknown[])
    .filter(([what]) => what === "member")
    .map(([, name, lines, sha256]) => ({
      name: String(name),
      lines: Number(lines),
      sha256: String(sha256),
    }));
}

export const sha256Of = (text: string): string => createHash("sha256").update(text).digest("hex");

/**
 * A sentence for each fact that the manifest states otherwise.
 *
 * @param manifest its hash must have been verified
 */
export function factDifferences(manifest: string, found: CloseFacts): string[] {
  const stated = new Map(
    manifest.split("\n").flatMap((line) => {
      if (line === "") return [];
      const [name, value] = JSON.parse(line) as [string, string | null];
      return name === "member" ? [] : [[name, value] as const];
    }),
  );
  return factNames
    .filter((name) => found[name] !== (stated.get(name) ?? null))
    .map((name) => `${name} is ${shown(found[name])}, but ${shown(stated.get(name))} was sealed`);
}

const shown = (value: string | null | undefined): string =>
  value === null || value === undefined ? "nothing" : JSON.stringify(value);

/** A sentence for each member that differs from its seal. */
export function memberDifferences(sealed: readonly Member[], found: readonly (Member | BrokenMember)[]): string[] {
  const foundByName = new Map(found.map((member) => [member.name, member]));
  const sealedNames = new Set(sealed.map(({ name }) => name));
  const extra = found.filter(({ name }) => !sealedNames.has(name));
  return [
    ...sealed.flatMap((member) => {
      const other = foundByName.get(member.name);
      if (other === undefined) return [`${member.name} was sealed and is missing`];
      if ("problem" in other) return [`${member.name}: ${other.problem}`];
      if (other.sha256 === member.sha256) return [];
      return other.lines === member.lines
        ? [`${member.name} differs from what was sealed`]
        : [`${member.name} has ${counted(other.lines, "line")}, but ${counted(member.lines, "was", "were")} sealed`];
    }),
    ...extra.map(({ name }) => `${name} is stored, but was not sealed`),
  ];
}
