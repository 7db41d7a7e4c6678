import { mkdir, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { roleNames } from "../../../src/app/people/permissions.ts";
import { useBrowser } from "../browser/use-browser.ts";
import { type DashboardStand, openDashboard, signedIn } from "../dashboard-stand.ts";
import { useFilledDatabase } from "../filled-database.ts";

const folder = fileURLToPath(new URL("../../../docs/images/dashboard/", import.meta.url));
const mostBytes = 80_000;

interface Picture {
  /** Of the file, without its ending. */
  name: string;
  path: string;
  colorScheme?: "light" | "dark";
  width?: 1_280 | 375;
  /** Of the picture, in CSS pixels from the top of the page. */
  height?: number;
}

/** Completed with an id. */
const customers = "/objects/customer/";

const pictures: readonly Picture[] = [
  { name: "home", path: "/" },
  { name: "events", path: "/events", height: 640 },
  { name: "objects", path: "/objects", height: 560 },
  { name: "customer", path: customers, height: 560 },
  { name: "deliveries", path: "/deliveries", height: 640 },
  { name: "endpoint", path: "/endpoint", height: 440 },
  { name: "reconciliation", path: "/reconciliation" },
  { name: "dunning", path: "/dunning" },
  { name: "chargebacks", path: "/chargebacks" },
  { name: "alerts", path: "/alerts", height: 640 },
  { name: "reports", path: "/reports" },
  { name: "handlers", path: "/handlers/receipts", height: 640 },
  { name: "admin", path: "/admin/users", height: 640 },
  { name: "home-narrow", path: "/", width: 375 },
  { name: "dunning-narrow-dark", path: "/dunning", width: 375, colorScheme: "dark" },
  { name: "reconciliation-dark", path: "/reconciliation", colorScheme: "dark" },
];

const database = useFilledDatabase();
const browser = useBrowser();
let dashboard: DashboardStand;
beforeAll(async () => {
  dashboard = await openDashboard(database, { service: database.service });
  await mkdir(folder, { recursive: true });
});
afterAll(() => dashboard.close());

/** The customer whose order is the newest. */
async function newestCustomer(): Promise<string> {
  const [{ customer_id: id }] = await database
    .db("mirror.orders")
    .whereNotNull("customer_id")
    .orderBy("created_at", "desc")
    .limit(1)
    .select("customer_id");
  return id as string;
}

test("writes the pictures of docs/dashboard.md", async () => {
  const { cookie } = await signedIn(database.db, roleNames, { email: "you@example.com" });
  const watched = await browser.open({ url: dashboard.url, cookie });
  const { page, go, complaints } = watched;
  const devTools = await page.context().newCDPSession(page);
  for (const { name, path, colorScheme = "light", width = 1_280, height = 800 } of pictures) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height });
    expect(await go(path === customers ? `${customers}${await newestCustomer()}` : path), path).toBe(200);
    const { data } = await devTools.send("Page.captureScreenshot", { format: "webp", quality: 75 });
    const bytes = Buffer.from(data, "base64");
    expect(bytes.length, name).toBeLessThan(mostBytes);
    await writeFile(`${folder}${name}.webp`, bytes);
  }
  expect(complaints()).toEqual([]);
  await watched.close();
});
