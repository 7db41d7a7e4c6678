import { isOnlineText } from "../../src/platform/postgres/migrations.ts";
import { splitStatements } from "../../src/platform/postgres/sql-file.ts";

/**
 * Statements that a new migration must not have while old processes are running, each with its line and the
 * alternative. A comment "harmless: why" before or in a statement lets it pass; so does a table that the same file
 * makes.
 */
export function migrationProblems(text: string): string[] {
  const isOnline = isOnlineText(text);
  const made = new Set<string>();
  return splitStatements(text).flatMap((statement) => {
    const sql = withoutTexts(statement.text);
    for (const [, table = ""] of sql.matchAll(/^create table (?:if not exists )?([\w.]+)/g)) {
      made.add(table);
    }
    const table = tableOf(sql);
    if (table !== undefined && made.has(table)) return [];
    if (statement.comments.some((comment) => /^harmless: \S+ \S+/.test(comment))) return [];
    const line = text.slice(0, statement.offset).split("\n").length;
    const isRepeated = statement.comments.includes("repeat");
    const why = isOnline ? onlineProblems(sql, isRepeated) : transactionProblems(sql);
    return why.map((each) => `line ${line}: ${each}`);
  });
}

/** In lower case, on one line, without comments and quoted texts. */
const withoutTexts = (sql: string): string =>
  sql
    .replaceAll(/--[^\n]*|\/\*.*?\*\//gs, " ")
    .replaceAll(/'(?:[^']|'')*'|\$(\w*)\$.*?\$\1\$/gs, "''")
    .replaceAll(/\s+/g, " ")
    .trim()
    .toLowerCase();

/** The table that a statement changes. */
const tableOf = (sql: string): string | undefined =>
  /^(?:alter table (?:if exists )?(?:only )?|update (?:only )?|delete from (?:only )?|insert into |truncate (?:table )?|create (?:unique )?index .*? on (?:only )?)([\w.]+)/.exec(
    sql,
  )?.[1];

type Rule = readonly [pattern: RegExp, why: string];

/** Rules for whole statements, in a transaction. */
const inTransaction: readonly Rule[] = [
  [
    /^(create|drop) (unique )?index concurrently|^reindex/,
    "concurrently cannot run in a transaction: move it to a file that begins with -- online",
  ],
  [
    /^create (unique )?index/,
    "it stops all writes to the table while it builds: create index concurrently if not exists, in an -- online file",
  ],
  [
    /^drop index/,
    "it locks the table: drop index concurrently if exists, in an -- online file, a release after the last use",
  ],
  [
    /^(update|delete|merge)\b|^with .* (update|delete from) /,
    "it holds a lock on every row until the end: in batches, -- repeat in an -- online file",
  ],
  [
    /^insert into .* from (alerts|inbox|mirror|receiver|reconcile|reports)\./,
    "it copies rows under the locks of the transaction: in batches, -- repeat in an -- online file",
  ],
  [/^(truncate|lock|vacuum|cluster|refresh)\b/, "it locks the whole table for as long as the transaction lasts"],
  [
    /^drop (table|schema|sequence|view|function)\b/,
    "processes of the release before still use it: drop it a release later",
  ],
];

/** Rules for actions of alter table, in a transaction. */
const ofActions: readonly Rule[] = [
  [
    /^alter (column )?[\w"]+ (set data )?type\b/,
    "it rewrites the table under an exclusive lock: add a column, fill it in batches, read it a release later",
  ],
  [
    /^alter (column )?[\w"]+ set not null/,
    "it reads the whole table under an exclusive lock: add constraint … check (… is not null) not valid, validate it in " +
      "an -- online file; set not null after that is quick, and harmless",
  ],
  [
    /^alter (column )?[\w"]+ (set|drop|add) (expression|generated|identity)/,
    "it may rewrite the table under an exclusive lock",
  ],
  [
    /^add (constraint [\w"]+ )?(unique|primary key) (?!using index)/,
    "it builds an index under an exclusive lock: create unique index concurrently in an -- online file, then add " +
      "constraint … using index",
  ],
  [
    /^add (constraint [\w"]+ )?(check|foreign key|exclude|not null)(?!.* not valid$)/,
    "it reads the whole table under an exclusive lock: add it not valid, and validate it in an -- online file",
  ],
  [
    /^add (column )?(?!constraint|unique|primary|check|foreign|exclude|not null)(.* (references|unique|primary key|check)\b|.* generated )/,
    "a column with a constraint of its own reads or rewrites the whole table: add the column alone, then the constraint " +
      "not valid",
  ],
  [
    /^add (column )?.* default .*\b(clock_timestamp|random|gen_random_uuid|uuidv7|nextval|timeofday)\b/,
    "a default that differs from row to row rewrites the table: add the column without it, set the default, fill the " +
      "rest in batches",
  ],
  [
    /^add (column )?(?!constraint|check|.* default ).*[^(] not null(?! not valid)/,
    "processes of the release before insert rows without it: give it a default",
  ],
  [/^validate /, "it reads the whole table: in an -- online file"],
  [/^attach partition/, "it reads the whole table to prove the bounds, unless a valid check constraint proves them"],
  [/^detach partition(?!.* concurrently)/, "it locks the table exclusively: detach … concurrently"],
  [
    /^(rename|drop|alter (column )?[\w"]+ drop default|set schema)/,
    "processes of the release before still use what it was: contract a release later",
  ],
  [/^set (logged|unlogged|tablespace|access method)/, "it rewrites the table under an exclusive lock"],
];

function transactionProblems(sql: string): string[] {
  const whole = inTransaction.find(([pattern]) => pattern.test(sql));
  if (whole !== undefined) return [whole[1]];
  const actions = /^alter table (?:if exists )?(?:only )?[\w.]+ (.*)$/.exec(sql)?.[1];
  if (actions === undefined) return [];
  return actionsOf(actions).flatMap((action) => {
    const found = ofActions.find(([pattern]) => pattern.test(action));
    return found === undefined ? [] : [found[1]];
  });
}

/** Splits at the commas that stand in no parentheses. */
function actionsOf(text: string): string[] {
  const found = [""];
  let depth = 0;
  for (const character of text) {
    depth += character === "(" ? 1 : character === ")" ? -1 : 0;
    if (character === "," && depth === 0) found.push("");
    else found[found.length - 1] += character;
  }
  return found.map((action) => action.trim());
}

function onlineProblems(sql: string, isRepeated: boolean): string[] {
  if (/^(update|delete|insert)\b|^with\b/.test(sql)) {
    return isRepeated && /\blimit \d+/.test(sql)
      ? []
      : ["one statement for all rows holds their locks until its end: -- repeat before it, and a limit in it"];
  }
  const mayRunAgain = [
    /^create (unique )?index concurrently if not exists \w+ on \w+\.\w+/,
    /^drop index concurrently if exists /,
    /^alter table (only )?[\w.]+ validate constraint \w+$/,
    /^analyze /,
  ];
  return mayRunAgain.some((pattern) => pattern.test(sql))
    ? []
    : [
        "a statement of an -- online file must be one that can run again after a crash, and locks nobody out: create index " +
          "concurrently if not exists … on schema.table, drop index concurrently if exists, validate constraint, analyze, " +
          "or a change in batches (-- repeat)",
      ];
}
