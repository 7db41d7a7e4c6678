import { readFile } from "node:fs/promises";
import { Marked, type Tokens } from "marked";
import { type Html, html } from "../../../../platform/html.ts";
import type { PageGroup } from "../../page-group.ts";
import { PageError, type Route } from "../../route.ts";

/**
 * The project's own pages of docs/, so that a runbook is one click away, also where no network is. Their text is part
 * of the program, as its code is: what they hold is trusted.
 */
export const docsPages: PageGroup = {
  place: { path: "/docs/runbooks", name: "Runbooks", access: "status:read", area: "Plumbing" },
  routes: [docsRoute()],
};

/** From the sources, from a build in dist/, and from an installed package. */
const folders = ["../../../../../docs/", "../../../../../../docs/"].map((path) => new URL(path, import.meta.url));

function docsRoute(): Route {
  const kept = new Map<string, Doc>();
  return {
    method: "GET",
    path: "/docs/:page",
    access: "status:read",
    async answer(_deps, { params }) {
      const name = params["page"] ?? "";
      const doc = kept.get(name) ?? (await readDoc(name));
      kept.set(name, doc);
      return { kind: "page", title: doc.title, body: html`<div class="doc">${doc.body}</div>` };
    },
  };
}

interface Doc {
  title: string;
  body: Html;
}

/** Throws `PageError` where there is no such page. */
async function readDoc(name: string): Promise<Doc> {
  if (/^[a-z-]{1,40}$/.test(name)) {
    for (const folder of folders) {
      const text = await readFile(new URL(`${name}.md`, folder), "utf8").catch(() => null);
      if (text !== null) return renderDoc(text);
    }
  }
  throw new PageError(404, "There is no such page among the docs. docs/architecture.md names them all.");
}

/** A page of Markdown. Its first line is the title, as `# Title`. */
function renderDoc(text: string): Doc {
  const [, title = "Docs", rest = ""] = /^# (.+)\n([\s\S]*)$/.exec(text) ?? [];
  return { title, body: { markup: markdown.parse(rest, { async: false }) } };
}

const markdown = new Marked({ gfm: true }).use({
  renderer: {
    heading({ tokens, depth, text }: Tokens.Heading) {
      return `<h${depth} id="${anchorOf(text)}">${this.parser.parseInline(tokens)}</h${depth}>`;
    },
    // What scrolls sideways can be reached by the keyboard.
    code: ({ text }: Tokens.Code) => html`<pre tabindex="0"><code>${text}</code></pre>`.markup,
    table(token: Tokens.Table) {
      const row = (cells: readonly Tokens.TableCell[], tag: "th" | "td") =>
        `<tr>${cells.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join("")}</tr>`;
      const body = token.rows.map((cells) => row(cells, "td")).join("");
      return `<div class="scroll" tabindex="0"><table><thead>${row(token.header, "th")}</thead><tbody>${body}</tbody></table></div>`;
    },
    link({ href, tokens }: Tokens.Link) {
      return html`<a href="${pathOf(href)}">${{ markup: this.parser.parseInline(tokens) }}</a>`.markup;
    },
    // The pictures are not part of an installation.
    image: ({ text }: Tokens.Image) => html`<em>${text}</em>`.markup,
  },
});

/** As GitHub makes it. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{Letter}\p{Number}\s_-]/gu, "")
    .replaceAll(" ", "-");

/** `operations.md#secrets` → `/docs/operations#secrets`; other files of the repository have no page here. */
function pathOf(href: string): string {
  if (/^(?:https:|#)/.test(href)) return href;
  const [, page, anchor = ""] = /^([a-z-]+)\.md(#.*)?$/.exec(href) ?? [];
  return page === undefined ? "/docs/architecture" : `/docs/${page}${anchor}`;
}
