import { createHash } from "node:crypto";
import { ConfigurationError } from "../platform/errors.ts";
import type { SignatureSchemeName, SigningSecret } from "../service/signature/scheme.ts";
import { secretProblem } from "../service/signature/secret-problem.ts";

/**
 * In SVC_WEBHOOK_SECRETS, and as many again of those stored that have not ended. Each costs every forged request another
 * pass over its body, some 2 ms for 1 MiB; a rotation needs two for each endpoint.
 */
export const maxSecrets = 8;

/**
 * A name for a secret that tells it from others without showing it, the same wherever it is kept: ten hex
 * digits of a hash, far too few to be of use to who does not have the secret.
 */
export function secretFingerprint(value: string): string {
  return createHash("sha256")
    .update("tallyhook signing secret\0")
    .update(value)
    .digest("hex")
    .slice(0, 10);
}

/**
 * The secrets of `SVC_WEBHOOK_SECRETS`, live for as long as the process runs. The id does not depend on the
 * place in the list, so that putting a newer one in front renames nothing in the inbox. Throws
 * `ConfigurationError` for too many, and for a value that the scheme
 * cannot use; a secret that verifies nothing must not start.
 */
export function environmentSecrets(
  scheme: SignatureSchemeName,
  values: readonly string[],
): SigningSecret[] {
  const distinct = [...new Set(values)];
  if (distinct.length > maxSecrets) {
    throw new ConfigurationError(
      `SVC_WEBHOOK_SECRETS holds ${distinct.length} secrets, and ${maxSecrets} is the most: every request is checked with ` +
        "each of them. Take out those that nothing is signed with any more.",
    );
  }
  return distinct.map((value, index) => {
    const problem = secretProblem(scheme, value);
    if (problem !== null) {
      throw new ConfigurationError(
        `SVC_WEBHOOK_SECRETS: secret number ${index + 1} ${problem}. ` +
          `Take the signing_secret that the service showed when the endpoint was made, or set SVC_SIGNATURE_SCHEME (now ${scheme}).`,
      );
    }
    return { id: `env:${secretFingerprint(value)}`, value, notBefore: null, notAfter: null };
  });
}
