import type { Permission } from "../people/permissions.ts";
import { type Html, html } from "../../platform/html.ts";
import { type List, commandFor, filtersIn } from "../list.ts";
import { type Choice, filterForm } from "./elements/filter-form.ts";
import { pageOf, pager } from "./elements/paging.ts";
import type { PageDeps, PageRequest, VisitorRoute } from "./route.ts";

/** The door of a list on the dashboard. */
interface ListPage<Filters, Row> {
  list: List<Filters, Row>;
  title: string;
  access: Permission;
  /** Above the filters. */
  head?(deps: PageDeps, request: PageRequest): Html | Promise<Html>;
  /** What can be chosen, where the page has words of its own for it or it has to be read. */
  choices?(deps: PageDeps, request: PageRequest): Promise<{ readonly [Name in keyof Filters]?: readonly Choice[] }>;
  table(rows: readonly Row[], deps: PageDeps, request: PageRequest): Html | Promise<Html>;
}

const pageSize = 50;

/** The page of a list: filters, rows, the way to the older ones, and the command that prints the same. */
export function listRoute<Filters, Row>(page: ListPage<Filters, Row>): VisitorRoute {
  const { list, title, access } = page;
  const { path } = list;
  return {
    method: "GET",
    path,
    access,
    list,
    async answer(deps, request) {
      const { query } = request;
      const { values, problems } = filtersIn(list.filters, query);
      const [head, choices, rows] = await Promise.all([
        page.head?.(deps, request),
        page.choices?.(deps, request),
        values && list.read(deps.db, values, pageSize + 1),
      ]);
      const inputs = Object.entries<List<Filters, Row>["filters"][keyof Filters]>(list.filters).map(
        ([name, filter]) => {
          const choice = choices?.[name as keyof Filters];
          return [name, choice === undefined ? filter : { ...filter, choices: choice }];
        },
      );
      const form = filterForm(path, query, Object.fromEntries(inputs), { problems: problems ?? {} });
      const above = html`${head ?? null} ${form}`;
      if (rows === null) return { kind: "page", title, status: 400, body: above };
      const { rows: shown, older } = pageOf(rows, pageSize, list.keyOf);
      return {
        kind: "page",
        title,
        body: html`${above} ${await page.table(shown, deps, request)} ${pager(path, query, older)}`,
        command: commandFor(list, query),
      };
    },
  };
}
