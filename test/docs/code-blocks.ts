import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "../support/project-root.ts";

export interface CodeBlock {
  page: string;
  /** The last heading above it. */
  heading: string;
  /** Empty where the fence names none. */
  language: string;
  text: string;
  /** Of the fence that opens it. */
  line: number;
  /** The file that the text above it names last, since the block before: where a reader puts it. Empty without one. */
  path: string;
}

/** All pages for readers. */
export const pages: readonly string[] = [
  "README.md",
  "SECURITY.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  ...readdirSync(join(projectRoot, "docs")).map((name) => `docs/${name}`),
].filter((path) => path.endsWith(".md"));

export const readPage = (page: string): string => readFileSync(join(projectRoot, page), "utf8");

/** Every block between fences, in lists as well, without the list's indent. */
export function codeBlocksOf(page: string): CodeBlock[] {
  const blocks: CodeBlock[] = [];
  let [heading, path] = ["", ""];
  let open: { block: CodeBlock; indent: string; fence: string; lines: string[] } | null = null;
  for (const [n, line] of readPage(page).split("\n").entries()) {
    const [, indent = "", fence, language = ""] = /^(\s*)(`{3,}|~{3,})\s*(\w*)/.exec(line) ?? [];
    if (open !== null) {
      if (fence === undefined || language !== "" || !fence.startsWith(open.fence)) {
        open.lines.push(line.startsWith(open.indent) ? line.slice(open.indent.length) : line);
        continue;
      }
      blocks.push({ ...open.block, text: open.lines.map((each) => `${each}\n`).join("") });
      [open, path] = [null, ""];
    } else if (fence !== undefined) {
      const block = { page, heading, language, text: "", line: n + 1, path };
      open = { block, indent, fence, lines: [] };
    } else {
      heading = /^#+ (.+)$/.exec(line)?.[1] ?? heading;
      path = [...line.matchAll(/`([\w./-]+\.(?:ts|sql|json))`/g)].at(-1)?.[1] ?? path;
    }
  }
  if (open !== null) throw new Error(`${page}:${open.block.line}: a block that nothing closes`);
  return blocks;
}

export const codeBlocks: readonly CodeBlock[] = pages.flatMap(codeBlocksOf);
