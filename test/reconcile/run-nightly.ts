import { expect } from "vitest";
import { type Json, startTestSandbox } from "../sandbox/harness.ts";
import {
  advanceDays,
  changesOf,
  firstDay,
  isInMirror,
  laterChangesOf,
  makeOldObjects,
  ownChangesOf,
  snapshotOf,
  wrongObjects,
} from "./planned-changes.ts";
import { none } from "./none.ts";
import { createReconcileStand } from "./reconcile-stand.ts";

/**
 * Fills a mirror, makes every change of the table "What is found when" without an event, and walks the nightly plan. Gives
 * back the changes that were found later than the table says, and those that were never found.
 */
export async function runNightly({
  nights,
  rotationNights,
}: {
  nights: number;
  rotationNights: number;
}): Promise<{ late: string[]; missed: string[] }> {
  const sandbox = await startTestSandbox("nights");
  const stand = await createReconcileStand(sandbox.url);
  const settings = { rotationNights };
  try {
    await sandbox.control("POST", "/clock", { now: firstDay });
    const old = await makeOldObjects(sandbox);
    // The month of the subscriptions ends in the first nights.
    await advanceDays(sandbox, 27);
    const filled = await stand.run({ kind: "nightly" }, settings);
    expect(filled).toMatchObject({ complete: true, totals: { left: none, healed: none } });
    expect(await wrongObjects(stand, sandbox)).toEqual([]);

    const waiting = new Map<string, { night: number; object: { table: string; id: string } }>();
    const foundOn = new Map<string, number>();
    const ownWaiting = new Set(ownChangesOf(old));
    const ownLate: string[] = [];
    const [first, second] = [changesOf(sandbox, old, rotationNights), laterChangesOf(sandbox, old)];
    for (let night = 1; night <= nights; night++) {
      for (const { row, make } of night === 1 ? first : night === 2 ? second : []) {
        waiting.set(row, { night, object: await make() });
      }
      await advanceDays(sandbox, 1);
      const result = await stand.run({ kind: "nightly" }, settings);
      expect(result, `night ${night}`).toMatchObject({ complete: true, totals: { left: none } });
      const { subscriptions } = (await snapshotOf(sandbox)) as unknown as Record<string, Json[]>;
      for (const own of ownWaiting) {
        const { row, id, has } = own;
        if (!has(subscriptions?.find((subscription) => subscription.id === id))) continue;
        ownWaiting.delete(own);
        const isFound = await isInMirror(stand, sandbox, { table: "subscriptions", id });
        if (!isFound) ownLate.push(`${row}: not on night ${night}`);
      }
      for (const [row, { night: made, object }] of waiting) {
        if (!(await isInMirror(stand, sandbox, object))) continue;
        foundOn.set(row, night - made + 1);
        waiting.delete(row);
      }
    }
    expect(await wrongObjects(stand, sandbox)).toEqual([]);
    const late = [...first, ...second].flatMap(({ row, within }) => {
      const night = foundOn.get(row);
      return night !== undefined && night > within ? [`${row}: night ${night}`] : [];
    });
    const never = [...ownWaiting].map(({ row }) => row);
    return { late: [...late, ...ownLate], missed: [...waiting.keys(), ...never] };
  } finally {
    await stand.close();
    await sandbox.close();
  }
}
