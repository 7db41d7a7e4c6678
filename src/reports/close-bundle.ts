import type { Knex } from "knex";
import { UsageError } from "../platform/errors.ts";
import { memberDifferences, membersOf } from "./close-manifest.ts";
import type { BrokenMember, Member } from "./close-manifest.ts";
import { digestOf, storedMembers } from "./close-members.ts";
import { assertNone, readIntactCloses } from "./close-verify.ts";
import type { StoredClose } from "./close-verify.ts";
import type { Write } from "./render/rendering.ts";

const bundleVersion = 1;

/**
 * Writes all of a sealed close as lines of text, the same bytes each time: a head, its manifest, then the lines of
 * each member in the manifest's order. docs/finance.md describes it, docs/verify-close.mjs verifies it. Throws
 * `UsageError` where there is no such close, `BrokenSealError` where it is not what was sealed: what was written by
 * then is worthless.
 */
export async function writeBundle(db: Knex, month: string, write: Write): Promise<StoredClose> {
  return db.transaction(
    async (trx) => {
      const closes = await readIntactCloses(trx);
      const close = closes.find(({ facts }) => facts.month === month);
      if (close === undefined) throw new UsageError(notClosed(month, closes));
      const { manifest, sha256 } = close;
      if (manifest === null) {
        throw new UsageError(
          `${month} was closed by an earlier version, which sealed no manifest: it cannot be exported. Its ` +
            `reports can ("tallyhook report NAME --from ${month} --out FILE").`,
        );
      }
      const lines = manifest.trimEnd().split("\n").length;
      const head = { tallyhook_close_bundle: bundleVersion, manifest_lines: lines, sha256 };
      await write(`${JSON.stringify(head)}\n${manifest}`);
      const found: (Member | BrokenMember)[] = [];
      for (const source of await storedMembers(trx, close.facts.snapshot)) {
        const put = (batch: readonly string[]) => write(batch.map((line) => `${line}\n`).join(""));
        found.push(await digestOf(source, put));
      }
      assertNone(month, memberDifferences(membersOf(manifest), found));
      return close;
    },
    { isolationLevel: "repeatable read", readOnly: true },
  );
}

function notClosed(month: string, closes: readonly StoredClose[]): string {
  const [first, last] = [closes[0]?.facts.month, closes.at(-1)?.facts.month];
  const there =
    first === undefined
      ? "No month is"
      : first === last
        ? `${first} is`
        : `${first} to ${last} are`;
  return `${month} is not closed. ${there} closed.`;
}
