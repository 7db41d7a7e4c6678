import { serviceVersion } from "../../../core/contract/endpoint.ts";
import { ApiError } from "./api-error.ts";

export interface ApiVersion {
  version: string;
  deprecated: boolean;
  /** The day from which the version is refused, `YYYY-MM-DD`. */
  sunset: string | null;
  retired: boolean;
}

/** The published versions, oldest first. The interface names none, so these are the sandbox's own. */
const apiVersions: readonly [ApiVersion, ...ApiVersion[]] = [
  { version: "2024-03-01", deprecated: true, sunset: "2025-03-01", retired: true },
  { version: "2024-11-15", deprecated: true, sunset: "2027-11-15", retired: false },
  { version: serviceVersion, deprecated: false, sunset: null, retired: false },
];

export const latestVersion: ApiVersion = apiVersions.at(-1) ?? apiVersions[0];

export function findVersion(version: string): ApiVersion | undefined {
  return apiVersions.find((published) => published.version === version);
}

/**
 * The published version of that name. Refuses an unknown or retired one; `param` is the field or header that named it.
 */
export function usableVersion(name: string, param: string): ApiVersion {
  const version = findVersion(name);
  if (version === undefined) {
    throw new ApiError("invalid_api_version", "No such API version.", param);
  }
  if (version.retired) {
    throw new ApiError("api_version_sunset", "The API version is retired.", param);
  }
  return version;
}

/** The version of one request: its `SVC-Version` header, else the account's pinned version, else the latest. */
export function effectiveVersion(
  { account }: { account: { readonly api_version: string | null } },
  header: string,
): string {
  if (header !== "") return usableVersion(header, "SVC-Version").version;
  return account.api_version ?? latestVersion.version;
}
