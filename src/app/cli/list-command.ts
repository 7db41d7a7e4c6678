import type { Command } from "commander";
import type { Knex } from "knex";
import type { List } from "../list.ts";
import { type Takes, howMany, registerReading } from "./command.ts";
import type { CliContext } from "./context.ts";
import { type Columns, tableText } from "./table.ts";

/** The door of a list on the command line. */
interface ListCommand<Filters, Row, Short, More> {
  list: List<Filters, Row>;
  columns: Columns<Row>;
  /** Options that stand for filters: `--all` for a state. */
  short?: { takes: Takes<Short>; means(given: Short): Partial<NoInfer<Filters>> };
  /** In place of an empty table. */
  none?: string;
  /** What is printed with the rows, such as counts. */
  more?(db: Knex): Promise<More>;
  text?(more: More): string;
  /** Default: the rows. */
  json?(rows: readonly Row[], more: More): unknown;
}

/** Makes a command the door of a list. Where more rows match than it prints, it says how to see them. */
export function registerList<Filters, Row, Short, More>(
  command: Command,
  context: CliContext,
  { list, columns, short, none, more, text, json }: ListCommand<Filters, Row, Short, More>,
): Command {
  const takes = { ...list.filters, ...short?.takes, limit: howMany(50) };
  return registerReading(command, context, {
    takes: takes as unknown as Takes<Filters & Short & { limit: number }>,
    async read({ db }, input) {
      const rows = await list.read(db, { ...input, ...short?.means(input) }, input.limit + 1);
      const shown = rows.slice(0, input.limit);
      return {
        rows: shown,
        last: rows.length > input.limit ? shown.at(-1) : undefined,
        more: (await more?.(db)) as More,
      };
    },
    text: ({ rows, more: counts }) =>
      `${rows.length === 0 && none !== undefined ? `${none}\n` : tableText(columns, rows)}${text?.(counts) ?? ""}`,
    json: (found) => json?.(found.rows, found.more) ?? found.rows,
    note: ({ last }) => (last === undefined ? null : `more follow: add --before ${list.keyOf(last)}`),
  });
}
