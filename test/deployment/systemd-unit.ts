import { readFileSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "../support/project-root.ts";

export const unitFolder = join(projectRoot, "deploy/systemd");

/** A service with what systemd adds to it from tallyhook-.service.d/. */
export interface Unit {
  readonly name: string;
  /** The values of a key that may be there several times. */
  all(key: string): string[];
  /** The value in force of a key that holds one: the last. */
  one(key: string): string | undefined;
  /** Names of the secrets that it gets, with the files that they come from. */
  credentials(): Record<string, string>;
  /** What its process finds in its environment, where the file of settings has these. */
  environment(settings: Readonly<Record<string, string>>): Record<string, string>;
}

export function readUnit(name: string): Unit {
  const entries = [`${name}.service`, "tallyhook-.service.d/common.conf"]
    .map((file) => readFileSync(join(unitFolder, file), "utf8"))
    .flatMap((text) => [...text.matchAll(/^(\w+)=(.*)$/gm)])
    .map(([, key = "", value = ""]) => ({ key, value }));
  const all = (key: string) => entries.flatMap((each) => (each.key === key ? [each.value] : []));
  return {
    name,
    all,
    one: (key) => all(key).at(-1),
    credentials: () => Object.fromEntries(all("LoadCredential").map((text) => text.split(":") as [string, string])),
    environment(settings) {
      const own = all("Environment").map((text) => {
        const [, variable = "", value = ""] = /^(\w+)=(.*)$/.exec(text) ?? [];
        return [variable, value.replace("%d", `/run/credentials/${name}.service`)] as const;
      });
      const unset = new Set(all("UnsetEnvironment").flatMap((names) => names.split(" ")));
      return Object.fromEntries(
        Object.entries({ ...Object.fromEntries(own), ...settings }).filter(([variable]) => !unset.has(variable)),
      );
    },
  };
}
