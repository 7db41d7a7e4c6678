import { cpus, loadavg, totalmem, type as osType, release } from "node:os";
import { closeSync, fdatasyncSync, openSync, unlinkSync, writeSync } from "node:fs";
import { join } from "node:path";
import { withServer } from "../../test/support/server-commands.ts";
import type { Stand } from "./stand.ts";
import { spreadOf } from "./statistics.ts";

/** The conditions that a run's results depend on, one line each. */
export async function describeMachine({ postgres, directory }: Stand): Promise<string[]> {
  const { rows } = await withServer(postgres.url, (client) =>
    client.query<{ server: string; fsync: string; commit: string }>(
      `select current_setting('server_version') as server, current_setting('fsync') as fsync,
              current_setting('synchronous_commit') as commit`,
    ),
  );
  const [found] = rows;
  const sync = syncMs(directory);
  return [
    `${cpus().length} CPUs (${cpus()[0]?.model ?? "unknown"}), ${Math.round(totalmem() / 2 ** 30)} GB, ${osType()} ${release()}, Node ${process.version}`,
    `PostgreSQL ${found?.server}, fsync ${found?.fsync}, synchronous_commit ${found?.commit}; fdatasync of 8 KB: p50 ${sync.p50.toFixed(2)} ms, p99 ${sync.p99.toFixed(2)} ms`,
    `load average before the run: ${loadavg()
      .map((load) => load.toFixed(2))
      .join(", ")}`,
  ];
}

/** How long the disk takes to sync 8 KB, as at each commit. */
function syncMs(directory: string) {
  const path = join(directory, "sync.probe");
  const file = openSync(path, "w");
  const page = Buffer.alloc(8_192, 1);
  const times: number[] = [];
  for (let n = 0; n < 200; n++) {
    const startMs = performance.now();
    writeSync(file, page);
    fdatasyncSync(file);
    times.push(performance.now() - startMs);
  }
  closeSync(file);
  unlinkSync(path);
  return spreadOf(times);
}
