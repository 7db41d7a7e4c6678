#!/usr/bin/env node
/**
 * Verifies what "tallyhook close export" wrote, without Tallyhook, a database or a network: Node 20 or later is enough.
 *
 *   node verify-close.mjs 2026-09.close 2026-10.close
 *
 * A bundle is lines of text (docs/finance.md, "What an auditor gets"). The first is the head: how many lines the
 * manifest has, and its SHA-256. The manifest states the facts of the close and lists its members, each with its
 * number of lines and their SHA-256. Then come the lines of the members, in that order, and nothing else. Given
 * several bundles, each must contain the SHA-256 of the month before it.
 *
 * It exits with 0 when all is as it was sealed, with 3 when something differs, with 2 when a file cannot be read,
 * with 64 when it was not told what to read. Whoever makes up a whole bundle can make up its SHA-256 as well: compare
 * it with the one that was signed.
 */
import { createHash } from "node:crypto";
import { createReadStream, realpathSync } from "node:fs";
import process, { argv, stderr, stdout } from "node:process";
import { pathToFileURL } from "node:url";

const firstVersionNames = [
  "snapshot",
  "month",
  "time_zone",
  "from",
  "to",
  "as_of",
  "closed_at",
  "closed_by",
  "verdict",
  "reason",
  "previous_sha256",
];

/** By version. The second says who prepared the month for another to close. */
const factNamesOf = {
  1: firstVersionNames,
  2: firstVersionNames.flatMap((name) => (name === "closed_by" ? [name, "prepared_by"] : [name])),
};

/** Something that is not as it was sealed. */
class Difference extends Error {}

const sha256 = () => createHash("sha256");
const lineBreak = 0x0a;

/** Cuts bytes into lines at line feeds alone. Each line keeps its line feed, so that every byte is hashed. */
async function* linesOf(chunks) {
  let rest = Buffer.alloc(0);
  for await (const chunk of chunks) {
    let bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    for (let end = bytes.indexOf(lineBreak); end >= 0; end = bytes.indexOf(lineBreak)) {
      yield bytes.subarray(0, end + 1);
      bytes = bytes.subarray(end + 1);
    }
    rest = bytes;
  }
  if (rest.length > 0) throw new Difference("it is cut off in the middle of a line");
}

async function nextLine(lines, what) {
  const { value, done } = await lines.next();
  if (done) throw new Difference(`it ends before ${what}`);
  return value;
}

function parse(line, what) {
  try {
    return JSON.parse(line.toString("utf8"));
  } catch {
    throw new Difference(`${what} is not JSON`);
  }
}

async function readHead(lines) {
  const line = await nextLine(lines, "its first line");
  const { manifest_lines: count, sha256: signed } = Object(parse(line, "its first line"));
  const exact = { tallyhook_close_bundle: 1, manifest_lines: count, sha256: signed };
  if (!Number.isSafeInteger(count) || line.toString("utf8") !== `${JSON.stringify(exact)}\n`) {
    throw new Difference("its first line is not the head of a bundle that this script knows");
  }
  return { count, signed };
}

async function readManifest(lines, { count, signed }) {
  const hash = sha256();
  const read = [];
  for (let n = 0; n < count; n++) {
    const line = await nextLine(lines, "the end of its manifest");
    hash.update(line);
    read.push(line);
  }
  if (hash.digest("hex") !== signed) {
    throw new Difference("its manifest or the SHA-256 in its first line was changed");
  }
  const [version, ...rest] = read.map((line) => parse(line, "a line of its manifest"));
  const factNames = factNamesOf[/^tallyhook-close,([12])$/.exec(String(version))?.[1]];
  if (factNames === undefined) {
    throw new Difference("its manifest is of a version that this script does not know");
  }
  const facts = Object.fromEntries(rest.slice(0, factNames.length));
  const members = rest.slice(factNames.length);
  if (String(Object.keys(facts)) !== String(factNames) || members.some(([kind]) => kind !== "member")) {
    throw new Difference("its manifest does not state what a close states");
  }
  return {
    facts,
    members: members.map(([, name, size, hashed]) => ({ name, lines: size, sha256: hashed })),
  };
}

/** Gives back what stands above a report's rows; of other members nothing is kept. */
async function readMember(lines, member) {
  const hash = sha256();
  let last = null;
  for (let n = 0; n < member.lines; n++) {
    last = await nextLine(lines, `the end of ${member.name}`);
    hash.update(last);
  }
  if (hash.digest("hex") !== member.sha256) {
    throw new Difference(`${member.name} differs from what was sealed`);
  }
  return member.name.endsWith("/about") ? parse(last, member.name) : null;
}

/** What is printed on a report must be what the manifest says of its rows. */
function checkReport({ about, row_count: count, sha256: stored }, name, members) {
  const rows = members.find((member) => member.name === `reports/${name}/rows`);
  const agree =
    about.report === name &&
    rows !== undefined &&
    [about.sha256, stored].every((hash) => hash === rows.sha256) &&
    [about.rows, count].every((number) => number === rows.lines - 1);
  if (!agree) throw new Difference(`reports/${name}/about contradicts reports/${name}/rows`);
}

/**
 * Verifies one bundle. Throws `Difference` that names what is not as it was sealed.
 *
 * @param chunks an (async) iterable of Buffers
 */
export async function verifyBundle(chunks) {
  const lines = linesOf(chunks);
  const head = await readHead(lines);
  const { facts, members } = await readManifest(lines, head);
  const verdicts = [];
  for (const member of members) {
    const found = await readMember(lines, member);
    if (found === null) continue;
    checkReport(found, member.name.split("/")[1], members);
    verdicts.push(found.about.proof.verdict);
  }
  if (!(await lines.next()).done) throw new Difference("it goes on after its last member");
  const isProved = verdicts.every((verdict) => verdict === "PASS");
  if (isProved !== (facts.verdict === "PASS")) {
    throw new Difference(`its verdict ${facts.verdict} is not that of its reports`);
  }
  return { facts, members, sha256: head.signed };
}

const monthAfter = (month) => {
  const [year, number] = month.split("-").map(Number);
  return new Date(Date.UTC(year, number, 1)).toISOString().slice(0, 7);
};

/**
 * What is wrong between bundles that are each right, in the order of their months: a sentence each.
 *
 * @param bundles results of `verifyBundle`
 */
export function brokenLinks(bundles) {
  return bundles.slice(1).flatMap(({ facts }, at) => {
    const before = bundles[at];
    if (facts.month !== monthAfter(before.facts.month)) {
      return [`${before.facts.month} and ${facts.month} do not follow each other: give the bundles in between`];
    }
    return facts.previous_sha256 === before.sha256
      ? []
      : [`${facts.month} was sealed after another ${before.facts.month} than the one that was given`];
  });
}

async function main(files) {
  if (files.length === 0) {
    stderr.write("Name the bundles to verify: node verify-close.mjs 2026-09.close 2026-10.close\n");
    return 64;
  }
  const bundles = [];
  let code = 0;
  for (const file of files) {
    try {
      bundles.push(await verifyBundle(createReadStream(file)));
    } catch (error) {
      const isFound = error instanceof Difference;
      code = isFound ? 3 : Math.max(code, 2);
      stdout.write(`${file} ${isFound ? "DIFFERS" : "cannot be read"}: ${error.message}.\n`);
    }
  }
  bundles.sort((a, b) => (a.facts.month < b.facts.month ? -1 : 1));
  for (const { facts, members, sha256: hash } of bundles) {
    const prepared = facts.prepared_by === undefined ? "" : `, prepared by ${facts.prepared_by},`;
    const forced = facts.reason === null ? "" : ` (forced: ${facts.reason})`;
    stdout.write(
      `${facts.month} is what was sealed: ${facts.verdict}${forced}, closed by ${facts.closed_by}${prepared} at ` +
        `${facts.closed_at}, ${members.length} members, SHA-256 ${hash}, ` +
        `after ${facts.previous_sha256 ?? "none: it is the first"}.\n`,
    );
  }
  for (const problem of brokenLinks(bundles)) {
    code = 3;
    stdout.write(`The chain is BROKEN: ${problem}.\n`);
  }
  if (code === 0) stdout.write("Compare each SHA-256 with the one that was signed.\n");
  return code;
}

// A link to this script is this script: it must never end well without having looked.
if (argv[1] !== undefined && import.meta.url === pathToFileURL(realpathSync(argv[1])).href) {
  process.exitCode = await main(argv.slice(2));
}
