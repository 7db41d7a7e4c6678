import type { About } from "../about.ts";
import type { Exponents } from "../currencies.ts";
import type { Column, Report, Row } from "../report.ts";

/** Where a rendering writes to; resolves when more may come. */
export type Write = (chunk: string | Uint8Array) => Promise<void>;

export interface RenderingInput {
  report: Pick<Report, "name" | "explains" | "figures">;
  columns: readonly Column[];
  exponents: Exponents;
  write: Write;
}

/** Rows as they come, then what they are: one pass, whatever the number of rows. */
export interface Rendering {
  rows(rows: readonly Row[]): Promise<void>;
  end(about: About): Promise<void>;
}
