import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { projectRoot } from "./places.ts";

/** Stands in for `tallyhook/handlers` of a deployment. */
const definition = pathToFileURL(join(projectRoot, "src/bin/handlers.js")).href;

/**
 * Writes handlers into a folder, by their names, each as the fields of its definition in JavaScript. Returns the
 * settings with which a worker runs them.
 */
export async function handlersFolder(
  directory: string,
  handlers: Readonly<Record<string, string>>,
): Promise<{ TALLYHOOK_HANDLERS: string }> {
  await mkdir(directory, { recursive: true });
  for (const [name, fields] of Object.entries(handlers)) {
    const text = `import { appendFileSync } from "node:fs";
import { defineHandler } from ${JSON.stringify(definition)};
export default defineHandler({ name: "${name}", ${fields} });
`;
    await writeFile(join(directory, `${name}.mjs`), text);
  }
  return { TALLYHOOK_HANDLERS: directory };
}
