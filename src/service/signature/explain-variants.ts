/** Ways in which a body or a key is commonly changed between the sender and whoever checks it. */

export type BodyChange =
  | "none"
  | "final_newline_added"
  | "final_newline_removed"
  | "lf_to_crlf"
  | "crlf_to_lf"
  | "bom_added"
  | "reserialised";

/** What the sender may have signed, given the bytes at hand; `change` says what then became of it. */
export function bodyVariants(body: Buffer): { change: BodyChange; bytes: Buffer }[] {
  const text = body.toString("latin1");
  const variants: { change: BodyChange; bytes: Buffer }[] = [{ change: "none", bytes: body }];
  const add = (change: BodyChange, signed: string | Buffer): void => {
    const bytes = typeof signed === "string" ? Buffer.from(signed, "latin1") : signed;
    if (!variants.some((variant) => variant.bytes.equals(bytes))) variants.push({ change, bytes });
  };
  add("final_newline_added", text.replace(/(\r?\n)$/, ""));
  add("final_newline_added", text.trimEnd());
  add("final_newline_removed", `${text}\n`);
  add("final_newline_removed", `${text}\r\n`);
  add("lf_to_crlf", text.replaceAll("\r\n", "\n"));
  add("crlf_to_lf", text.replaceAll(/\r?\n/g, "\r\n"));
  if (text.startsWith("\u00ef\u00bb\u00bf")) add("bom_added", text.slice(3));
  for (const json of jsonSpellings(body)) add("reserialised", Buffer.from(json, "utf8"));
  return variants;
}

function jsonSpellings(body: Buffer): string[] {
  let value: unknown;
  try {
    value = JSON.parse(body.toString("utf8").replace(/^\ufeff/, ""));
  } catch {
    return [];
  }
  const compact = JSON.stringify(value);
  const spaced = spacedJson(value);
  const spellings = [
    compact,
    spaced,
    JSON.stringify(value, null, 2),
    JSON.stringify(value, null, 4),
  ];
  return [...spellings, escapeNonAscii(compact), escapeNonAscii(spaced)];
}

/** With a space after each comma and colon, as other languages write by default. */
function spacedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spacedJson).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(
    ([key, member]) => `${JSON.stringify(key)}: ${spacedJson(member)}`,
  );
  return `{${members.join(", ")}}`;
}

function escapeNonAscii(json: string): string {
  return json.replace(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

export type KeyForm = "whole" | "without_prefix" | "base64" | "hex" | "with_newline" | "trimmed";

/** The keys that a secret may have been turned into. */
export function keyVariants(secret: string): { form: KeyForm; key: Buffer }[] {
  const bare = secret.startsWith("whsec_") ? secret.slice("whsec_".length) : secret;
  const variants: { form: KeyForm; key: Buffer }[] = [];
  const add = (form: KeyForm, key: Buffer): void => {
    if (key.length > 0 && !variants.some((variant) => variant.key.equals(key))) {
      variants.push({ form, key });
    }
  };
  add("whole", Buffer.from(secret, "utf8"));
  add("trimmed", Buffer.from(secret.trim(), "utf8"));
  add("without_prefix", Buffer.from(bare, "utf8"));
  if (/^[A-Za-z0-9+/_-]+={0,2}$/.test(bare)) add("base64", Buffer.from(bare, "base64"));
  if (/^([0-9a-fA-F]{2})+$/.test(bare)) add("hex", Buffer.from(bare, "hex"));
  add("with_newline", Buffer.from(`${secret}\n`, "utf8"));
  return variants;
}
