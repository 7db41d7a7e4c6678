import { serviceVersion } from "../../service/routes/version.ts";

export interface ApiVersion {
  version: string;
  deprecated: boolean;
  /** The day from which it is refused, `YYYY-MM-DD`. */
  sunset: string | null;
  retired: boolean;
}

/** The published versions, oldest first. The interface names none: these are the sandbox's. */
const apiVersions: readonly [ApiVersion, ...ApiVersion[]] = [
  { version: "2024-03-01", deprecated: true, sunset: "2025-03-01", retired: true },
  { version: "2024-11-15", deprecated: true, sunset: "2027-11-15", retired: false },
  { version: serviceVersion, deprecated: false, sunset: null, retired: false },
];

export const latestVersion: ApiVersion = apiVersions.at(-1) ?? apiVersions[0];

export function findVersion(version: string): ApiVersion | undefined {
  return apiVersions.find((published) => published.version === version);
}
