import { posix } from "node:path";
import { blankNonCode, importedModules } from "./source-text.ts";

export interface SourceFile {
  /** From the root of the project, with forward slashes: `src/core/inbox/append.ts`. */
  readonly path: string;
  readonly text: string;
}

/** The parts of another room that a room may use: all of it, or the files with these names. */
type Allowance = string;

/** What every part may use. */
const below: readonly Allowance[] = ["platform/**", "core/**", "app/**"];

/**
 * The import table of docs/architecture.md: five floors, each of which sees those below it. `core` has rooms of its
 * own, and a part sees no other part. Every other import is forbidden, type imports included. Only `main`, which
 * assembles the program, sees all.
 */
export const IMPORT_TABLE: Readonly<Record<string, readonly Allowance[]>> = {
  platform: [],
  "core/contract": [],
  "core/client": ["platform/**", "core/contract/**"],
  "core/queue": ["platform/**"],
  "core/inbox": ["platform/**"],
  "core/receiver": [
    "platform/**",
    "core/contract/**",
    "core/inbox/append.ts",
    "core/inbox/store-batch.ts",
    "core/inbox/locked-events.ts",
  ],
  "core/mirror": ["platform/**", "core/contract/**"],
  "core/worker": [
    "platform/**",
    "core/contract/**",
    "core/client/**",
    "core/queue/**",
    "core/inbox/**",
    "core/mirror/**",
  ],
  app: ["platform/**", "core/**"],
  "parts/alerts": below,
  "parts/browse": below,
  "parts/delivery": below,
  "parts/endpoint": below,
  "parts/reconcile": below,
  "parts/reports": below,
  // The stand-in knows of the service what its interface says, and nothing of us: else it could prove nothing.
  "parts/sandbox": ["platform/**", "core/contract/**"],
  "parts/sandbox/cli": [...below, "parts/sandbox/**"],
  handlers: ["parts/delivery/dispatch/define-handler.ts", "core/contract/**"],
  main: ["**"],
  bin: ["**"],
};

/** Names that do not describe a file's content (docs: style). */
const VAGUE_NAME = /^(?:utils?|helpers?|common|lib|managers?|misc|index)$/;

/** Code that is allowed only in the listed places; comments and strings do not count. */
const CONFINED = [
  {
    what: "process.env",
    pattern: /\bprocess\s*(?:\??\.\s*env\b|\[)|\benv\b[^;{}]*\}\s*=\s*process\b/g,
    // The merchant's own code has settings of its own.
    where: ["app/config/config.ts", "main/main.ts", "handlers/**"],
    instead: "read it in app/config/config.ts and pass the value",
  },
  {
    what: "the wall clock",
    pattern: /\bDate\s*\.\s*now\b|\bnew\s+Date\s*(?:\(\s*\)|(?![\s(\w]))|(?<!new\s+)\bDate\s*\(/g,
    where: ["platform/**"],
    instead: "take a Clock",
  },
  {
    what: "Math.random",
    pattern: /\bMath\s*\.\s*random\b/g,
    where: ["platform/**"],
    instead: "take a Random",
  },
] as const;

/** `*` matches a part of one name, `**` any path. */
function matches(pattern: string, path: string): boolean {
  const source = pattern
    .split(/(\*\*|\*)/)
    .map((part) => (part === "**" ? ".*" : part === "*" ? "[^/]*" : part.replace(/[.+?^${}()|[\]\\]/g, "\\$&")))
    .join("");
  return new RegExp(`^${source}$`).test(path);
}

/** `src/core/inbox/append.ts` → `core/inbox`, `src/app/runtime.ts` → `app`. */
function roomOf(path: string): string {
  if (/^src\/parts\/sandbox\/(?:cli\/|part\.ts|local-sandbox\.ts)/.test(path)) return "parts/sandbox/cli";
  const [, floor = "", room = ""] = path.split("/");
  const name = floor === "core" || floor === "parts" ? `${floor}/${room}` : floor;
  return name.replace(/\.[jt]s$/, "");
}

const insideSrc = (path: string): boolean => path.startsWith("src/");
const belowSrc = (path: string): string => path.slice("src/".length);

interface Edge {
  readonly from: string;
  readonly to: string;
  readonly line: number;
}

function relativeEdges(file: SourceFile): Edge[] {
  return importedModules(file.text).flatMap(({ specifier, line }) =>
    specifier?.startsWith(".") ? [{ from: file.path, to: posix.join(posix.dirname(file.path), specifier), line }] : [],
  );
}

function importFaults(edge: Edge, known: ReadonlySet<string>): string[] {
  const at = `${edge.from}:${edge.line}`;
  if (!known.has(edge.to)) return [`${at} imports ${edge.to}, which does not exist`];
  if (!insideSrc(edge.from)) return [];
  if (!insideSrc(edge.to)) return [`${at} imports ${edge.to}, which is outside src/`];

  const [from, to] = [roomOf(edge.from), roomOf(edge.to)];
  const allowed = IMPORT_TABLE[from];
  if (allowed === undefined) return [`${at}: src/${from} is not in the import table`];
  if (from === to || allowed.some((pattern) => matches(pattern, belowSrc(edge.to)))) return [];
  const may = allowed.length === 0 ? "nothing of ours" : allowed.join(", ");
  return [`${at} imports ${edge.to}: ${from} may import ${may}`];
}

function formFaults(file: SourceFile): string[] {
  if (!insideSrc(file.path)) return [];
  const faults: string[] = [];
  const below = belowSrc(file.path);
  if (below.split("/").some((name) => VAGUE_NAME.test(name.replace(/\.[jt]s$/, "")))) {
    faults.push(`${file.path}: the name does not say what the file does`);
  }
  for (const { specifier, line, reExport } of importedModules(file.text)) {
    if (reExport && specifier?.startsWith(".")) {
      faults.push(`${file.path}:${line} hands on ${specifier}: import it where it is made`);
    }
    if (specifier === null && !["main", "platform", "bin", "parts/delivery"].includes(roomOf(file.path))) {
      faults.push(`${file.path}:${line} imports a computed path: no rule can see where it leads`);
    }
  }
  const code = blankNonCode(file.text);
  for (const { what, pattern, where, instead } of CONFINED) {
    if (where.some((place) => matches(place, below))) continue;
    for (const { index } of code.matchAll(pattern)) {
      const line = code.slice(0, index).split("\n").length;
      faults.push(`${file.path}:${line} reads ${what}: ${instead}`);
    }
  }
  return faults;
}

/** Each cycle once, as the path that closes it. */
function cycles(edges: readonly Edge[]): string[] {
  const targets = new Map<string, string[]>();
  for (const { from, to } of edges) targets.set(from, [...(targets.get(from) ?? []), to]);
  const finished = new Set<string>();
  const found: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path);
    if (start >= 0) {
      found.push(`cycle: ${[...trail.slice(start), path].join(" → ")}`);
      return;
    }
    if (finished.has(path)) return;
    for (const target of targets.get(path) ?? []) visit(target, [...trail, path]);
    finished.add(path);
  };
  for (const path of targets.keys()) visit(path, []);
  return found;
}

/**
 * Everything that breaks the design's rules of structure, one line a fault; empty when all is well.
 *
 * @param files all of src/: an import of a file that is not among them is a fault
 */
export function architectureFaults(files: readonly SourceFile[]): string[] {
  const known = new Set(files.map((file) => file.path));
  const edges = files.flatMap(relativeEdges);
  return [...edges.flatMap((edge) => importFaults(edge, known)), ...files.flatMap(formFaults), ...cycles(edges)];
}
