import { readProof } from "../../reports/verdict.ts";
import type { Runtime } from "../../runtime.ts";
import { ok, skipped, warning } from "./finding.ts";
import type { Finding } from "./finding.ts";

/** What reports would say of everything before the last run's T0: the same definition, so the same word. */
export async function examineProof(runtime: Pick<Runtime, "db">): Promise<Finding> {
  const db = await runtime.db();
  const last = await db("reconcile.runs")
    .whereNot("state", "running")
    .whereNot("kind", "range")
    .orderBy("id", "desc")
    .first<{ t0: Date } | undefined>("t0");
  if (last === undefined)
    return skipped("proof", 'nothing was read yet: run "npx tallyhook import"');
  const t0 = last.t0.toISOString();
  const { verdict, readUntil, openFindings } = await readProof(
    db,
    { fromUtc: t0, toUtc: t0 },
    null,
  );
  if (verdict === "PASS") return ok("proof", `everything created before ${t0} is proved`);
  return verdict === "INCOMPLETE"
    ? warning(
        "proof",
        `INCOMPLETE: of what was created before ${t0} all is proved until ${readUntil ?? "never"}`,
        'run "npx tallyhook reconcile"',
      )
    : warning(
        "proof",
        `FAIL: ${openFindings} findings are open`,
        'look at "npx tallyhook findings list"',
      );
}
