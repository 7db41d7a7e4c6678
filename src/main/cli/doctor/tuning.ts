import type { Knex } from "knex";
import type { Runtime } from "../../../app/runtime.ts";
import { type CheckResult, advice, ok, skipped } from "../../../app/check-result.ts";
import { type ServerSetting, howToSet, readServerSettings } from "./database.ts";

const check = "tuning";

/** A setting by which an event costs more than it need. docs/operations.md has what each was measured to be worth. */
interface Tuned {
  name: string;
  /** The recommended value; null where the present one is good enough. */
  better(setting: ServerSetting): string | null;
  why: string;
}

/** `least` is in the unit that `pg_settings` has for the setting. */
const atLeast =
  (least: number, shown: string): Tuned["better"] =>
  ({ setting }) =>
    Number(setting) < least ? shown : null;

const tuned: readonly Tuned[] = [
  {
    name: "max_wal_size",
    better: atLeast(4_096, "4GB"),
    why:
      "under load a checkpoint follows whenever this much was logged, and after it the first change of each page " +
      "logs the whole page, which is most of the log of a large database (the disk must have room for this much)",
  },
  {
    name: "checkpoint_timeout",
    better: atLeast(15 * 60, "15min"),
    why: "after each checkpoint the first change of every page logs the whole page",
  },
  {
    name: "checkpoint_completion_target",
    better: atLeast(0.9, "0.9"),
    why: "a checkpoint writes in a burst, and events wait for the disk",
  },
  {
    name: "wal_compression",
    better: ({ setting, choices }) =>
      setting === "off" ? (["lz4", "zstd"].find((each) => choices?.includes(each)) ?? null) : null,
    why: "pages in the log are less than half as large with it, for a few microseconds each",
  },
  {
    name: "shared_buffers",
    better: atLeast((512 * 1_024) / 8, "512MB"),
    why:
      "the indexes of a large database do not fit, so that most pages that an event touches are read and written " +
      "again; a quarter of the machine's memory is usual",
  },
];

/** Names what makes events dear on a server that is not the embedded one. A line each, none of them a failure. */
export async function checkTuning(runtime: Pick<Runtime, "db" | "config">): Promise<CheckResult[]> {
  if (runtime.config.database === "embedded") {
    return [skipped(check, "the embedded PostgreSQL has settings of its own")];
  }
  const db = await runtime.db();
  const settings = await readServerSettings(
    db,
    tuned.map(({ name }) => name),
  );
  const place = await readPlace(db);
  const found = tuned.flatMap(({ name, better, why }) => {
    const known = settings.get(name);
    const value = known === undefined ? null : better(known);
    if (known === undefined || value === null) return [];
    const says = `${name} is ${known.shown}, and better ${value}: ${why}`;
    return [advice(check, says, howToSet(place, known, name, value))];
  });
  return found.length > 0 ? found : [ok(check, "no setting makes an event more expensive than necessary")];
}

async function readPlace(db: Knex): Promise<{ role: string; database: string }> {
  const { rows } = await db.raw<{ rows: { role: string; database: string }[] }>(
    "select current_user as role, current_database() as database",
  );
  const [place] = rows;
  if (place === undefined) throw new Error("the server does not say what it is");
  return place;
}
