import type { Claims, Notation } from "./explain-claims.ts";
import { bodyVariants, keyVariants } from "./explain-variants.ts";
import type { BodyChange, KeyForm } from "./explain-variants.ts";
import { hmacSha256 } from "./hmac-keys.ts";
import type { SignatureSchemeName, SignedRequest } from "./scheme.ts";

/** A way to arrive at a signature that a request carries. */
export interface SignatureMatch {
  scheme: SignatureSchemeName;
  secretId: string;
  body: BodyChange;
  key: KeyForm;
  notation: Notation;
}

/** The key and the notation that each scheme asks for. */
export const expectedForms: Readonly<
  Record<SignatureSchemeName, { key: KeyForm; notation: Notation }>
> = {
  svc: { key: "whole", notation: "hex" },
  hex: { key: "whole", notation: "hex" },
  "standard-webhooks": { key: "base64", notation: "base64" },
};

/** Every way that leads to one of the claimed signatures, the one with the fewest mistakes first. */
export function findMatches(
  { body, secrets }: Pick<SignedRequest, "body" | "secrets">,
  claims: Claims,
  configured: SignatureSchemeName,
): SignatureMatch[] {
  const matches: SignatureMatch[] = [];
  const bodies = bodyVariants(body);
  const layouts = layoutsOf(claims);
  for (const secret of secrets) {
    for (const { form, key } of keyVariants(secret.value)) {
      for (const { change, bytes } of bodies) {
        for (const { scheme, prefix } of layouts) {
          const digest = hmacSha256(key, [prefix, bytes]);
          const claimed = claims.digests.find((claim) => claim.bytes.equals(digest));
          if (claimed === undefined) continue;
          const { notation } = claimed;
          matches.push({ scheme, secretId: secret.id, body: change, key: form, notation });
        }
      }
    }
  }
  return matches.sort((a, b) => countMistakes(a, configured) - countMistakes(b, configured));
}

function layoutsOf({
  times,
  messageIds,
}: Claims): { scheme: SignatureSchemeName; prefix: string }[] {
  return [
    ...times.map((time) => ({ scheme: "svc" as const, prefix: `${time}.` })),
    { scheme: "hex" as const, prefix: "" },
    ...messageIds.flatMap((id) =>
      times.map((time) => ({ scheme: "standard-webhooks" as const, prefix: `${id}.${time}.` })),
    ),
  ];
}

function countMistakes(match: SignatureMatch, configured: SignatureSchemeName): number {
  const expected = expectedForms[match.scheme];
  return [
    match.scheme !== configured,
    match.body !== "none",
    match.key !== expected.key,
    match.notation !== expected.notation,
  ].filter(Boolean).length;
}
