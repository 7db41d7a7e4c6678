import { renderCsv } from "./csv.ts";
import { renderHtml } from "./html.ts";
import { renderJson } from "./json.ts";
import type { Rendering, RenderingInput } from "./rendering.ts";
import type { Report } from "../base/report.ts";
import { renderTable } from "./table.ts";
import { renderBeancount, renderLedger } from "./text-ledger.ts";
import { renderXlsx } from "./xlsx.ts";

const everyReports = ["table", "csv", "xlsx", "json", "html"] as const;
/** For programs of plain-text accounting. */
const journals = ["ledger", "beancount"] as const;
export const formats = [...everyReports, ...journals] as const;
export type Format = (typeof formats)[number];

/** The formats that a report can be written in. */
export const formatsOf = ({ takesAccounts }: Pick<Report, "takesAccounts">): readonly Format[] =>
  takesAccounts === true ? formats : everyReports;

const renderers: Readonly<Record<Format, (input: RenderingInput) => Rendering>> = {
  table: renderTable,
  csv: renderCsv,
  xlsx: (input) => renderXlsx(input),
  json: renderJson,
  html: renderHtml,
  ledger: renderLedger,
  beancount: renderBeancount,
};

export const createRendering = (format: Format, input: RenderingInput): Rendering => renderers[format](input);
