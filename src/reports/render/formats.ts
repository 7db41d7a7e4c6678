import { renderCsv } from "./csv.ts";
import { renderHtml } from "./html.ts";
import { renderJson } from "./json.ts";
import type { Rendering, RenderingInput } from "./rendering.ts";
import { renderTable } from "./table.ts";
import { renderXlsx } from "./xlsx.ts";

export const formats = ["table", "csv", "xlsx", "json", "html"] as const;
export type Format = (typeof formats)[number];

const renderers: Readonly<Record<Format, (input: RenderingInput) => Rendering>> = {
  table: renderTable,
  csv: renderCsv,
  xlsx: (input) => renderXlsx(input),
  json: renderJson,
  html: renderHtml,
};

export const createRendering = (format: Format, input: RenderingInput): Rendering =>
  renderers[format](input);
