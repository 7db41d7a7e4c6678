import { describe, expect, test } from "vitest";
import { html } from "../../../src/platform/html.ts";
import { currencyDigits } from "../../../src/platform/money.ts";
import type { Report, Row } from "../../../src/parts/reports/base/report.ts";
import { allReports, findReport } from "../../../src/parts/reports/catalogue/all.ts";
import { renderHtml } from "../../../src/parts/reports/render/html.ts";
import { scaleFor } from "../../../src/app/figures/svg-figures.ts";
import { about } from "../sample-about.ts";

/** The page of rows that are given by name; a column that is not named is empty. */
async function page(report: Report, given: readonly Record<string, string>[]): Promise<string> {
  let written = "";
  const { columns } = report;
  const write = (chunk: string | Uint8Array) => {
    written += String(chunk);
    return Promise.resolve();
  };
  const rendering = renderHtml({ report, columns, exponents: currencyDigits, write });
  const rows: Row[] = given.map((cells) => columns.map(({ name }) => cells[name] ?? null));
  await rendering.rows(rows);
  await rendering.end({ ...about, report: report.name, rows: rows.length });
  return written;
}

const figuresOf = (text: string): string[] => text.match(/<figure[\s\S]*?<\/figure>/g) ?? [];
const visibleText = (text: string): string => text.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ");

const control = (day: string, currency: string, more: Record<string, string> = {}) => ({
  day,
  currency,
  type: "sale",
  status: "succeeded",
  mirror_count: "1",
  mirror_sum: "123450",
  outcome: "equal",
  ...more,
});

test("a template escapes whatever is not HTML already", () => {
  const hostile = `<img src=x onerror="alert('&')">`;
  const inner = html`<b title="${hostile}">${hostile}</b>`;
  expect(inner.markup).not.toMatch(/<img|"alert|'&'/);
  expect(html`${[inner, null, false, 0, "<"]}`.markup).toBe(`${inner.markup}0&lt;`);
});

test.each(allReports.map(({ name }) => name))(
  "%s is one page without script or network, whatever its texts hold",
  async (name) => {
    const report = findReport(name);
    const hostile = `</style><script src="//evil.example">"'&`;
    const cells = Object.fromEntries(
      report.columns.map((column) => {
        const values = { text: hostile, day: "2026-10-31", month: "2026-10-01" } as const;
        const value = column.name === "currency" ? "jpy" : undefined;
        const time = column.kind === "time" ? "2026-10-31T00:00:00.000Z" : "12345";
        return [column.name, value ?? values[column.kind as keyof typeof values] ?? time];
      }),
    );
    const text = await page(report, [cells]);
    const tags = (text.match(/<[a-z][^>]*>/gi) ?? []).join("\n");
    expect(tags).not.toMatch(/<(?:script|link|img|iframe|object)|\s(?:href|src|on\w+)=/i);
    expect(text).not.toMatch(/@import|url\((?!#)/);
    expect(text).toContain(`content="default-src 'none'; style-src 'unsafe-inline'"`);
    const isTold = report.columns.some(({ kind, name: key }) => kind === "text" && key !== "currency");
    expect(text.includes("&lt;/style&gt;&lt;script")).toBe(isTold);
    expect(text.match(/<\/style>/g)).toHaveLength(1);
    expect(await page(report, [])).toContain("There is nothing to show for this period.");
  },
);

test("says what it stands on, and the rows with their sums", async () => {
  const text = await page(findReport("daily-control"), [
    control("2026-10-01", "usd"),
    control("2026-10-02", "usd"),
    control("2026-10-02", "jpy"),
  ]);
  const read = visibleText(text);
  expect(read).toContain("Daily control");
  expect(read).toContain("✓ PASS");
  expect(read).toContain("Europe/Berlin: from 2026-09-30T22:00:00Z, before 2026-11-30T23:00:00Z (UTC)");
  expect(read).toContain(about.sha256);
  expect(read).toMatch(/Sum usd usd 2 2,469\.00/);
  expect(read).toMatch(/Sum jpy jpy 1 123,450 /);
});

describe("charts", () => {
  test("are one for each currency, and can be read without being seen", async () => {
    const text = await page(findReport("daily-control"), [
      control("2026-10-01", "usd"),
      control("2026-10-01", "jpy", { mirror_sum: "777" }),
      control("2026-10-02", "usd", { outcome: "differs" }),
    ]);
    const [jpy = "", usd = "", ...rest] = figuresOf(text);
    expect(rest).toEqual([]);
    expect(visibleText(jpy)).toContain("777 JPY of transactions in the mirror; all equal");
    expect(visibleText(usd)).toContain("2,469.00 USD of transactions in the mirror; 1 marked because of a difference");
    expect(usd).toMatch(/<text class="mark"[^>]*>×</);
    expect(visibleText(usd)).toContain("differs from the service");
    for (const figure of [jpy, usd]) {
      const [, title, description] = /role="img" aria-labelledby="(\S+) (\S+)"/.exec(figure) ?? [];
      expect(figure).toContain(`<title id="${title}">`);
      expect(figure).toContain(`<desc id="${description}">`);
    }
  });

  test("leave room for the days on which nothing happened", async () => {
    const days = ["2026-10-01", "2026-10-05"].map((day) => control(day, "usd"));
    const [figure = ""] = figuresOf(await page(findReport("daily-control"), days));
    expect(visibleText(figure)).toContain("5 days, 2,469.00 USD");
  });

  test("show more than a hundred days by month", async () => {
    const days = Array.from({ length: 120 }, (_, n) => new Date(Date.UTC(2026, 0, 1 + n)).toISOString().slice(0, 10));
    const text = await page(
      findReport("daily-control"),
      days.map((day) => control(day, "usd")),
    );
    expect(visibleText(figuresOf(text)[0] ?? "")).toContain("4 months, 148,140.00 USD");
  });

  test("step from the opening to the closing balance", async () => {
    const month = { month: "2026-10-01", currency: "usd", chargebacks: "0", reversals: "0" };
    const text = await page(findReport("month-end"), [
      {
        ...month,
        cumulative_gross_opening: "1000",
        sales: "5000",
        refunds: "2000",
        corrections: "-500",
        cumulative_gross_closing: "3500",
      },
      {
        ...month,
        cumulative_gross_opening: "3500",
        sales: "100",
        refunds: "0",
        corrections: "0",
        cumulative_gross_closing: "3600",
      },
    ]);
    const [figure = ""] = figuresOf(text);
    const read = visibleText(figure);
    expect(read).toContain("Opening 10.00 USD Sales +51.00 USD Refunds -20.00 USD");
    expect(read).toContain("Corrections -5.00 USD Closing 36.00 USD");
    const widths = [...figure.matchAll(/<rect\s+class="(\w+)"[^>]*\swidth="([\d.]+)"/g)];
    const [opening, sales] = widths.map(([, , width]) => Number(width));
    expect((sales ?? 0) / (opening ?? 1)).toBeCloseTo(5.1, 1);
  });

  test("hold a ratio against the threshold of its programme", async () => {
    const visa = { brand: "visa", programme: "VAMP", threshold_percent: "1.5", settled: "1000" };
    const text = await page(findReport("network-monitor"), [
      {
        ...visa,
        month: "2026-10-01",
        disputes: "1600",
        ratio_percent: "2.00",
        threshold_disputes: "1500",
        outcome: "over",
      },
      { month: "2026-10-01", brand: "amex", settled: "9", disputes: "0", outcome: "no programme" },
    ]);
    const figures = figuresOf(text);
    expect(figures).toHaveLength(1);
    expect(visibleText(figures[0] ?? "")).toContain("threshold 1.5 %");
    expect(visibleText(figures[0] ?? "")).toContain("1600 of 1500");
    expect(text).toMatch(/<td class="bad">\s*over\s*<\/td>/);
  });

  test("account for every declined renewal", async () => {
    const text = await page(findReport("dunning-funnel"), [
      {
        currency: "usd",
        entered: "10",
        entered_amount: "1000",
        recovered_at_2: "4",
        recovered_at_3: "1",
        recovered_at_4: "0",
        recovered_later: "0",
        recovered: "5",
        recovered_amount: "500",
        lost: "2",
        lost_amount: "200",
        in_progress: "3",
        in_progress_amount: "300",
      },
    ]);
    const read = visibleText(figuresOf(text)[0] ?? "");
    expect(read).toContain("Declined 10 · 10.00 USD Recovered at attempt 2 4 · 40.0 %");
    expect(read).toContain("Still in progress 3 · 30.0 % · 3.00 USD Lost 2 · 20.0 % · 2.00 USD");
  });
});

test.each([
  [
    [0, 7],
    [0, 2, 4, 6, 8],
  ],
  [
    [-30, 120],
    [-50, 0, 50, 100, 150],
  ],
  [[0], [0]],
  [[0.34], [0, 0.1, 0.2, 0.3, 0.4]],
])("an axis of %j has the ticks %j", (values, ticks) => {
  const scale = scaleFor(values);
  expect(scale.ticks.map((tick) => Number(tick.toFixed(6)))).toEqual(ticks);
});
