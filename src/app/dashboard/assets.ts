import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";

export interface Asset {
  type: string;
  body: Buffer;
}

/** The dashboard's own files, by the path under which a page asks for them. */
export interface Assets {
  style: string;
  script: string;
  byPath: ReadonlyMap<string, Asset>;
}

/** Reads the files once. Their paths contain a hash of their content, so a browser may keep them indefinitely. */
export async function readAssets(): Promise<Assets> {
  const [style, script] = await Promise.all([
    readAsset("style.css", "text/css; charset=utf-8"),
    readAsset("script.js", "text/javascript; charset=utf-8"),
  ]);
  return {
    style: style.path,
    script: script.path,
    byPath: new Map([style, script].map(({ path, ...asset }) => [path, asset])),
  };
}

async function readAsset(name: string, type: string): Promise<Asset & { path: string }> {
  const body = await readFile(new URL(`assets/${name}`, import.meta.url));
  const hash = createHash("sha256").update(body).digest("hex").slice(0, 16);
  return { path: `/assets/${hash}/${name}`, type, body };
}
