import { type Command, InvalidArgumentError } from "commander";
import type { Knex } from "knex";
import {
  type Change,
  type FeedFilter,
  positionAt,
  readChanges,
  readNewest,
  changeJson,
} from "../../../core/mirror/changes/read-changes.ts";
import { kindNamed } from "../../../core/mirror/changes/kind-named.ts";
import { changeKinds } from "../../../core/mirror/changes/kinds.ts";
import { mirrorResources } from "../../../core/mirror/resources.ts";
import { canonicalTimestamp } from "../../../core/contract/timestamp.ts";
import { UsageError } from "../../../platform/errors.ts";
import { withoutControls } from "../../../platform/readable-text.ts";
import { oneOf, wholeNumber } from "../../../app/people/fields.ts";
import { changeLine } from "../../../app/cli/change-text.ts";
import { registerConsumers } from "./consumers.ts";
import { type Opened, parserOf, withDatabase } from "../../../app/cli/command.ts";
import type { CliContext } from "../../../app/cli/context.ts";
import { followSignal, printAsItComes } from "../../../app/cli/follow.ts";

/** The start: after a number, at a time, or at the oldest change that is kept. */
type Since = { after: number } | { time: Date };

interface ChangesOptions {
  follow?: boolean;
  since?: Since;
  kind?: string[];
  resource?: string;
  limit?: number;
  json?: boolean;
}

const usualLimit = 20;
const pageSize = 1_000;

export function registerChanges(program: Command, context: CliContext): void {
  const changes = program
    .command("changes")
    .argument("[id]", "only of the object with this id")
    .option("--follow", "then print each new change until Ctrl-C")
    .option(
      "--since <start>",
      'begin at a time, after a change\'s number, or at the "beginning" (default: the newest)',
      parseSince,
    )
    .option("--kind <kinds>", "only these kinds, separated by commas", parseKinds)
    .option("--resource <resource>", `only of: ${resourceNames.join(", ")}`, parserOf(oneOf(resourceNames)))
    .option("--limit <n>", `how many (default: ${usualLimit})`, parserOf(wholeNumber(1, 10_000)))
    .option("--json", "print JSON, one change a line")
    .addHelpText("after", `\nKinds:\n${kindLines()}`)
    .action((id: string | undefined, options: ChangesOptions) => print(context, id, options));

  registerConsumers(changes, context);
}

async function print(context: CliContext, id: string | undefined, options: ChangesOptions): Promise<void> {
  const { follow, since, limit, json } = options;
  if (follow === true && since !== undefined && limit !== undefined) {
    throw new UsageError("--limit has no meaning with both --since and --follow. Leave one out.");
  }
  const filter = filterOf(id, options);
  const lineOf = json === true ? jsonLine : changeLine;
  if (follow === true) {
    const signal = followSignal(context);
    // `printAsItComes` itself reports that the database is unreachable.
    const work = ({ db }: Opened) => followChanges(context, db, { since, limit, filter, lineOf, signal });
    await withDatabase(context, "changes", work, "silent");
    return;
  }
  const { changes, hasMore } = await withDatabase(context, "changes", async ({ db }) =>
    since === undefined
      ? readNewest(db, { limit: limit ?? usualLimit, ...filter }).then(isAll)
      : readSince(db, since, { limit: limit ?? usualLimit, ...filter }),
  );
  context.stdout.write(changes.map((change) => `${lineOf(change)}\n`).join(""));
  if (json === true) return;
  if (changes.length === 0) {
    const of = id === undefined ? "" : ` Only changes of the object "${withoutControls(id)}" were asked for.`;
    context.stdout.write(`No change matches.${of}\n`);
  }
  const last = changes.at(-1);
  if (hasMore && last !== undefined) {
    context.stderr.write(`tallyhook: more changes follow: add --since ${last.seq}\n`);
  }
}

const isAll = ({ changes }: { changes: Change[] }) => ({ changes, hasMore: false });

async function readSince(
  db: Knex,
  since: Since,
  query: FeedFilter & { limit: number },
): Promise<{ changes: Change[]; hasMore: boolean }> {
  const { after, ...from } = await startOf(db, since);
  return readChanges(db, { ...query, ...from, after });
}

async function startOf(db: Knex, since: Since): Promise<{ after: number } & Pick<FeedFilter, "recordedFrom">> {
  if ("after" in since) return since;
  return { after: await positionAt(db, since.time), recordedFrom: since.time };
}

/**
 * Prints the newest changes, or all since a number or a time, and then each new one, until the signal. Waits while the
 * database is unreachable, without missing a change.
 */
export async function followChanges(
  output: Pick<CliContext, "stdout" | "stderr">,
  db: Knex,
  {
    since,
    limit = usualLimit,
    filter,
    lineOf,
    signal,
  }: {
    since?: Since | undefined;
    limit?: number | undefined;
    filter: FeedFilter;
    lineOf: (change: Change) => string;
    signal: AbortSignal;
  },
): Promise<void> {
  const newest = since === undefined ? await readNewest(db, { limit, ...filter }) : null;
  const start = since === undefined ? { after: newest?.position ?? 0 } : await startOf(db, since);
  let { after } = start;
  const look = async () => {
    const query = { limit: pageSize, ...filter, ...start, after };
    const { changes, position, hasMore } = await readChanges(db, query);
    after = position;
    return { rows: changes, more: hasMore };
  };
  await printAsItComes(output, { first: newest?.changes ?? [], look, lineOf, signal });
}

const jsonLine = (change: Change): string => JSON.stringify(changeJson(change));

const filterOf = (
  id: string | undefined,
  { kind, resource }: ChangesOptions,
): Pick<FeedFilter, "id" | "kinds" | "resource"> => ({
  ...(id === undefined ? {} : { id }),
  ...(kind === undefined ? {} : { kinds: kind }),
  ...(resource === undefined ? {} : { resource }),
});

function parseSince(text: string): Since {
  if (text === "beginning") return { after: 0 };
  if (/^\d{1,15}$/.test(text)) return { after: Number(text) };
  const time = canonicalTimestamp(text);
  if (time === null) {
    throw new InvalidArgumentError(
      'Use a time with its offset, such as 2026-03-01T12:00:00Z, the number of a change, or "beginning".',
    );
  }
  return { time: new Date(time) };
}

function parseKinds(text: string, others: string[] = []): string[] {
  const kinds = text.split(",").map((kind) => kind.trim());
  for (const kind of kinds) {
    const found = kindNamed(kind);
    if ("problem" in found) throw new InvalidArgumentError(found.problem);
  }
  return [...others, ...kinds];
}

const resourceNames: readonly string[] = mirrorResources.map(({ name }) => name);

function kindLines(): string {
  const lines = resourceNames.flatMap((resource) => {
    const kinds = changeKinds.filter((kind) => kind.startsWith(`${resource}.`));
    return kinds.length === 0 ? [] : [`  ${kinds.join(", ")}\n`];
  });
  return lines.join("");
}
