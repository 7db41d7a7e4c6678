/** What the headers of a captured request claim, read as generously as possible. */
export interface Claims {
  /** Every copy of the signature headers. */
  signatureHeaders: { name: string; value: string }[];
  digests: { bytes: Buffer; notation: Notation }[];
  /** As written. */
  times: string[];
  messageIds: string[];
}

export type Notation = "hex" | "upper_case_hex" | "base64";

const signatureHeaderNames = ["svc-signature", "webhook-signature"];

export function readClaims(rawHeaders: readonly string[]): Claims {
  const valuesOf = (name: string): string[] =>
    rawHeaders.flatMap((header, index) =>
      index % 2 === 0 && header.toLowerCase() === name ? [rawHeaders[index + 1] ?? ""] : [],
    );
  const signatureHeaders = signatureHeaderNames.flatMap((name) =>
    valuesOf(name).map((value) => ({ name, value })),
  );
  const all = signatureHeaders.map(({ value }) => value);
  const timesInside = all.flatMap((value) =>
    [...value.matchAll(/(?:^|[,;\s])t=(\d{1,20})/g)].map(([, time = ""]) => time),
  );
  return {
    signatureHeaders,
    digests: all.flatMap(readDigests),
    times: [...new Set([...timesInside, ...valuesOf("webhook-timestamp")])],
    messageIds: [...new Set(valuesOf("webhook-id"))],
  };
}

function readDigests(header: string): Claims["digests"] {
  const hex = [...header.matchAll(/(?<![0-9A-Za-z+/])[0-9a-fA-F]{64}(?![0-9A-Za-z+/=])/g)];
  const base64 = [...header.matchAll(/(?<![0-9A-Za-z+/_-])[0-9A-Za-z+/_-]{43}=/g)];
  return [
    ...hex.map(([text]) => ({
      bytes: Buffer.from(text, "hex"),
      notation: text === text.toLowerCase() ? ("hex" as const) : ("upper_case_hex" as const),
    })),
    ...base64.map(([text]) => ({
      bytes: Buffer.from(text, "base64"),
      notation: "base64" as const,
    })),
  ];
}
