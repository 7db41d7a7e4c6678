import { expect, test } from "vitest";
import { createOpenCounts } from "../../src/app/dashboard/open-counts.ts";
import type { PageGroup, SummaryCard } from "../../src/app/dashboard/page-group.ts";
import type { PageDeps, Visitor } from "../../src/app/dashboard/route.ts";
import { permissionsOf } from "../../src/app/people/permissions.ts";
import { createLog } from "../../src/platform/log.ts";

const visitor = { permissions: permissionsOf(["viewer"]) } as Visitor;
const deps = {
  clock: { now: () => new Date("2026-11-22T12:00:00Z") },
  log: createLog({ level: "silent", name: "test" }),
} as PageDeps;

const groupOf = (name: string, count: () => Promise<number>): PageGroup => ({
  place: { path: `/${name}`, name, access: "status:read", area: "Data" },
  routes: [],
  summary: {
    access: "status:read",
    read: async () => ({ count: await count(), tone: "bad" }) as SummaryCard,
  },
});

test("after a change the next page has new counts, and before it the ones that were read", async () => {
  let open = 3;
  const reader = createOpenCounts(deps, [groupOf("a", async () => open)]);
  const shown = async () => [...(await reader.counts(visitor)).values()];
  expect(await shown()).toEqual([{ n: 3, tone: "bad" }]);
  open = 2;
  expect(await shown()).toEqual([{ n: 3, tone: "bad" }]);
  reader.expire();
  expect(await shown()).toEqual([{ n: 2, tone: "bad" }]);
});

test("a close waits for the count in progress, and for no other", async () => {
  const read: string[] = [];
  let release = (): void => {};
  const slow = groupOf("a", async () => {
    await new Promise<void>((resolve) => (release = resolve));
    return read.push("a");
  });
  const reader = createOpenCounts(deps, [slow, groupOf("b", async () => read.push("b"))]);
  const page = reader.counts(visitor);
  const closed = reader.close();
  release();
  await closed;
  await page;
  expect(read).toEqual(["a"]);
});
