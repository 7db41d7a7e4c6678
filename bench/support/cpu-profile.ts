import { readdir, readFile } from "node:fs/promises";
import { basename, join } from "node:path";

interface CpuProfile {
  nodes: {
    id: number;
    callFrame: { functionName: string; url: string; lineNumber: number };
    children?: number[];
  }[];
  samples: number[];
  timeDeltas: number[];
}

export type ProfileRow = Record<"share" | "where", string>;

/** The functions that took most of the busy time, for each profile in a directory. */
export async function summariseProfiles(directory: string, top = 25): Promise<{ name: string; rows: ProfileRow[] }[]> {
  const files = (await readdir(directory)).filter((file) => file.endsWith(".cpuprofile")).sort();
  return Promise.all(
    files.map(async (file) => ({
      name: basename(file, ".cpuprofile"),
      rows: summarise(JSON.parse(await readFile(join(directory, file), "utf8")) as CpuProfile).slice(0, top),
    })),
  );
}

function summarise({ nodes, samples, timeDeltas }: CpuProfile): ProfileRow[] {
  const places = new Map(nodes.map(({ id, callFrame }) => [id, placeOf(callFrame)]));
  const spent = new Map<string, number>();
  let busy = 0;
  samples.forEach((id, n) => {
    const place = places.get(id) ?? "";
    const micros = timeDeltas[n] ?? 0;
    if (place === "(idle)" || place === "(program)" || place === "(root)") return;
    busy += micros;
    spent.set(place, (spent.get(place) ?? 0) + micros);
  });
  return [...spent.entries()]
    .sort(([, a], [, b]) => b - a)
    .map(([where, micros]) => ({ share: `${((100 * micros) / busy).toFixed(1)} %`, where }));
}

/** `function file:line`, with the package or our own folder before the file. */
function placeOf({ functionName, url, lineNumber }: CpuProfile["nodes"][number]["callFrame"]) {
  if (functionName.startsWith("(")) return functionName;
  const file = url
    .replace(/^.*node_modules\//, "")
    .replace(/^.*\/build\//, "")
    .replace(/^file:\/\//, "");
  return `${functionName || "(anonymous)"} ${file}:${lineNumber + 1}`;
}
