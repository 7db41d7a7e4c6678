import { generateSecret, generateURI, verify } from "otplib";

/** A phone's clock may be wrong by so much. */
const toleranceSeconds = 30;

/** A new secret for an app that shows codes (RFC 6238), in base 32. */
export const newTotpSecret = (): string => generateSecret();

/** The address that such an app reads, often as a picture. Holds the secret. */
export const totpAddress = (secret: string, email: string): string =>
  generateURI({ issuer: "Tallyhook", label: email, secret });

/**
 * The time step of a code; null where the code is wrong, or is of a step that was used before. The caller that accepts
 * it notes the step (`useTotpStep`).
 */
export async function totpStep(
  { secret, lastStep }: { secret: string; lastStep: number | null },
  code: string,
  now: Date,
): Promise<number | null> {
  const token = code.replaceAll(/\s/g, "");
  if (!/^\d{6}$/.test(token)) return null;
  const result = await verify({
    secret,
    token,
    epoch: Math.floor(now.getTime() / 1_000),
    epochTolerance: toleranceSeconds,
    ...(lastStep === null ? {} : { afterTimeStep: lastStep }),
  });
  return result.valid && "timeStep" in result ? result.timeStep : null;
}
