/**
 * What the software bill of materials has to hold, decided from npm's own list and the lock file. Pure.
 *
 * `npm sbom --omit=dev` leaves out whatever a development package needs as well (npm 10 and 11: koa, zod, pg-protocol),
 * so the whole list is asked for and what only development needs is taken out here, by the lock file's own marks.
 */
export interface Lock {
  packages: Record<string, LockedPackage>;
}

interface LockedPackage {
  name?: string;
  version?: string;
  dev?: boolean;
  license?: string;
}

/** The parts of CycloneDX 1.5 that are read here. */
export interface Bom {
  bomFormat: string;
  specVersion: string;
  metadata: { component: Component };
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

export interface Component {
  "bom-ref": string;
  type: string;
  name: string;
  version: string;
  purl: string;
  properties: { name: string; value: string }[];
  hashes?: { alg: string; content: string }[];
  licenses?: ({ license: { id?: string; name?: string } } | { expression: string })[];
}

/** `name@version` of each package that a deployment may install, on any platform. Pure. */
function productionPackages({ packages }: Lock): Set<string> {
  return new Set(
    Object.entries(packages)
      .filter(([path, { dev }]) => path !== "" && dev !== true)
      .map(([path, { name, version }]) => `${name ?? nameAt(path)}@${version}`),
  );
}

const nameAt = (path: string): string => path.slice(path.lastIndexOf("node_modules/") + 13);

/**
 * npm's list of all packages, without those that only development needs, under the program's own name (npm takes the
 * folder's). Throws if a package of the lock file is missing. Pure.
 */
export function productionBom(all: Bom, lock: Lock, program: string): Bom {
  const wanted = productionPackages(lock);
  const components = all.components.filter(({ name, version }) => wanted.has(`${name}@${version}`));
  const there = new Set(components.map(({ name, version }) => `${name}@${version}`));
  const missing = [...wanted].filter((each) => !there.has(each));
  if (missing.length > 0) throw new Error(`npm's list lacks ${missing.join(", ")}`);
  const root = { ...all.metadata.component, type: "application", name: program };
  const refs = new Set([root["bom-ref"], ...components.map((component) => component["bom-ref"])]);
  return {
    ...all,
    metadata: { ...all.metadata, component: root },
    components,
    dependencies: all.dependencies
      .filter(({ ref }) => refs.has(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((on) => refs.has(on)) })),
  };
}
