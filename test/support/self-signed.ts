import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const hasOpenssl = spawnSync("openssl", ["version"]).status === 0;

/** A key and a certificate for a host, without a trusted issuer. */
export function selfSigned(host: string): { key: Buffer; cert: Buffer } {
  const directory = mkdtempSync(join(tmpdir(), "tallyhook-tls-"));
  try {
    const [key, cert] = [join(directory, "key"), join(directory, "cert")];
    const made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    const named = ["-subj", `/CN=${host}`, "-addext", `subjectAltName=DNS:${host}`];
    const files = ["-days", "1", "-keyout", key, "-out", cert];
    execFileSync("openssl", ["req", "-x509", ...made, ...named, ...files], { stdio: "ignore" });
    return { key: readFileSync(key), cert: readFileSync(cert) };
  } finally {
    rmSync(directory, { recursive: true });
  }
}
