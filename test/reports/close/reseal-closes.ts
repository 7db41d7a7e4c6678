import type { Knex } from "knex";
import { manifestText, membersOf, sha256Of } from "../../../src/parts/reports/close/manifest.ts";
import { readCloses } from "../../../src/parts/reports/close/verify.ts";

/**
 * Seals each close again for what its row says by now, and links it to the one before, as somebody would who may
 * change everything. What was frozen is not looked at. In a transaction in which triggers are off.
 */
export async function resealCloses(trx: Knex.Transaction): Promise<void> {
  let previous: string | null = null;
  for (const { facts, manifest, sha256 } of await readCloses(trx)) {
    if (manifest === null) {
      previous = sha256;
      continue;
    }
    const linked = { ...facts, previous_sha256: previous };
    const again = manifestText({ facts: linked, members: membersOf(manifest) });
    await trx("reports.closes")
      .where({ id: facts.snapshot })
      .update({ previous_sha256: previous, manifest: again, sha256: sha256Of(again) });
    previous = sha256Of(again);
  }
}
