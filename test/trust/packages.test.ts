import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { projectRoot } from "../support/project-root.ts";
import { readSignatures, readVulnerabilities } from "./audit.ts";
import { type Bom, type Lock, productionBom } from "./sbom.ts";

/** What a merchant may ship beside their own code without asking anybody. */
const allowedLicences = new Set(["0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0"]);

describe("npm run sbom", () => {
  let text: string;
  let bom: Bom;
  let lock: Lock;

  beforeAll(async () => {
    const options = { cwd: projectRoot, maxBuffer: 64 * 2 ** 20 };
    const { stdout } = await promisify(execFile)("npm", ["run", "--silent", "sbom"], options);
    text = stdout;
    bom = JSON.parse(text) as Bom;
    lock = JSON.parse(await readFile(join(projectRoot, "package-lock.json"), "utf8")) as Lock;
  });

  test("lists each package that a deployment may install, and none that only development needs", () => {
    const locked = Object.entries(lock.packages).flatMap(([path, { version, dev }]) =>
      path === "" || dev === true ? [] : [`${path.split("node_modules/").at(-1)}@${version}`],
    );
    const listed = bom.components.map(({ name, version }) => `${name}@${version}`);
    expect(listed.toSorted()).toEqual([...new Set(locked)].toSorted());
    // Development needs these as well; npm's own `--omit=dev` leaves them out.
    for (const name of ["koa", "zod", "pg-protocol"]) {
      expect(
        bom.components.some((component) => component.name === name),
        name,
      ).toBe(true);
    }
  });

  test("is CycloneDX about this program, with a licence that is allowed and a hash for each package", () => {
    expect(bom).toMatchObject({
      bomFormat: "CycloneDX",
      specVersion: "1.5",
      metadata: { component: { type: "application", name: "tallyhook" } },
    });
    const faults = bom.components.flatMap(({ purl, hashes = [], licenses = [] }) => {
      const ids = licenses.map((each) => ("license" in each ? each.license.id : each.expression));
      const isAllowed = ids.length > 0 && ids.every((id) => allowedLicences.has(id ?? ""));
      const isHashed = hashes.some(({ alg, content }) => alg === "SHA-512" && content !== "");
      return isAllowed && isHashed && purl.startsWith("pkg:npm/") ? [] : [`${purl} ${ids.join()}`];
    });
    expect(faults).toEqual([]);
    const refs = new Set([...bom.components, bom.metadata.component].map((each) => each["bom-ref"]));
    const unknown = bom.dependencies.flatMap(({ ref, dependsOn }) =>
      [ref, ...dependsOn].filter((each) => !refs.has(each)),
    );
    expect(unknown).toEqual([]);
  });

  test("holds no path of a machine and no address of a registry", () => {
    expect(text).not.toContain(projectRoot.replace(/\/$/, ""));
    expect(text).not.toMatch(/\bregistry\.|"resolved"|file:\/\//);
  });

  test("fails where npm's list lacks a package of the lock file", () => {
    const [first] = bom.components;
    const without = { ...bom, components: bom.components.slice(1) };
    expect(() => productionBom(without, lock, "tallyhook")).toThrow(`lacks ${first?.name}@`);
  });
});

describe("the audit of packages", () => {
  const vulnerable = (severity: string): string =>
    JSON.stringify({ vulnerabilities: { koa: { name: "koa", severity, range: "<3.3.1" } } });

  test.each(["high", "critical"])("a %s vulnerability is a finding", (severity) => {
    expect(readVulnerabilities(vulnerable(severity))).toEqual({
      kind: "found",
      says: `vulnerable: koa <3.3.1 (${severity})`,
    });
  });

  test("a lower one is named and fails nothing", () => {
    expect(readVulnerabilities(vulnerable("moderate"))).toEqual({
      kind: "clean",
      says: "no high or critical vulnerability is known; of lower severity: koa <3.3.1 (moderate)",
    });
  });

  test("a package whose signature is wrong is a finding; one without a signature is counted", () => {
    const koa = { name: "koa", version: "3.3.0" };
    expect(readSignatures(JSON.stringify({ invalid: [koa], missing: [] }))).toEqual({
      kind: "found",
      says: "not signed by the registry: koa@3.3.0",
    });
    expect(readSignatures(JSON.stringify({ invalid: [], missing: [koa] })).kind).toBe("clean");
  });

  test.each([
    ["a mirror that takes no audits", { statusCode: 405, message: "405 - POST https://r.example/x" }],
    ["no network", { error: { code: "ENOTFOUND", summary: "request to https://r.example/x failed" } }],
    ["a registry that is down", { error: { code: "E503", summary: "503 from https://r.example" } }],
  ])("%s could not be asked, and the address of the registry is not told", (_, answer) => {
    for (const read of [readSignatures, readVulnerabilities]) {
      const outcome = read(JSON.stringify(answer));
      expect(outcome.kind).toBe("not asked");
      expect(outcome.says).not.toContain("r.example");
    }
  });

  test.each(["", "<html>", "{}", '{"error":{"code":"EINTEGRITY","summary":"x"}}'])(
    "an answer that is none, %j, does not pass for a clean one",
    (answer) => {
      expect(readSignatures(answer).kind).toBe("found");
      expect(readVulnerabilities(answer).kind).toBe("found");
    },
  );
});
