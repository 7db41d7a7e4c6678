import { afterAll, beforeAll, expect, test } from "vitest";
import { allReports } from "../../src/parts/reports/catalogue/all.ts";
import { type DashboardStand, openDashboard, send, signedIn } from "./dashboard-stand.ts";
import { useFilledDatabase } from "./filled-database.ts";
import { spoilTexts } from "./hostile-texts.ts";

const database = useFilledDatabase();
let dashboard: DashboardStand;
let cookie: string;

beforeAll(async () => {
  dashboard = await openDashboard(database);
  ({ cookie } = await signedIn(database.db, ["finance", "support"]));
});
afterAll(() => dashboard.close());

/** RFC 4180. */
function cellsOf(csv: string): string[][] {
  const rows: string[][] = [[]];
  const cell = /("(?:[^"]|"")*"|[^",\n]*)(,|\n|$)/gy;
  for (let found = cell.exec(csv); found !== null && cell.lastIndex <= csv.length; found = cell.exec(csv)) {
    const [, text = "", end] = found;
    rows.at(-1)?.push(text.startsWith('"') ? text.slice(1, -1).replaceAll('""', '"') : text);
    if (end === "\n") rows.push([]);
    if (end === "") break;
  }
  return rows.slice(0, -1);
}

test.each(["=1+1", "-1+1", "\t=1"])(
  "no report that is downloaded as CSV holds a formula, or loses the form of its rows: %j",
  async (begin) => {
    await spoilTexts(database.db, `${begin}"\n,"\u202Egnp`);
    let texts = 0;
    for (const { name } of allReports) {
      const path = `/reports/${name}/download?from=2026-10-01&to=2026-11-20&format=csv`;
      const answer = await send(`${dashboard.url}${path}`, { cookie });
      const body = await answer.text();
      expect([200, 400], `${name}: ${body.slice(0, 300)}`).toContain(answer.status);
      if (answer.status !== 200) continue;
      const [head = [], ...rows] = cellsOf(body);
      for (const row of rows) {
        expect(row.length, `${name}: ${row.join("|")}`).toBe(head.length);
        for (const text of row) {
          if (text.includes(begin)) texts += 1;
          if (!/^-?\d+(\.\d+)?$/.test(text)) expect(text, name).not.toMatch(/^[=+\-@\t\r\n]/);
        }
      }
    }
    expect(texts, "some report shows the text").toBeGreaterThan(0);
  },
);
