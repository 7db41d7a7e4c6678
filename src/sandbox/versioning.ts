import { Refusal } from "./refusal.ts";
import type { ApiVersion } from "./rules/versions.ts";
import { findVersion, latestVersion } from "./rules/versions.ts";

/** The published version of that name; refuses an unknown one and a retired one. `param` is where it was named. */
export function usableVersion(name: string, param: string): ApiVersion {
  const version = findVersion(name);
  if (version === undefined) {
    throw new Refusal("invalid_api_version", "No such API version.", param);
  }
  if (version.retired) {
    throw new Refusal("api_version_sunset", "The API version is retired.", param);
  }
  return version;
}

/** The version of one request: that of its `SVC-Version` header, else the account's, else the latest (spec, Versioning). */
export function effectiveVersion(
  { account }: { account: { readonly api_version: string | null } },
  header: string,
): string {
  if (header !== "") return usableVersion(header, "SVC-Version").version;
  return account.api_version ?? latestVersion.version;
}
