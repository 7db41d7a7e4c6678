const signatures: readonly (readonly [
  type: string,
  extension: string,
  leading: readonly string[],
])[] = [
  ["image/jpeg", "jpg", ["\xff\xd8\xff"]],
  ["image/png", "png", ["\x89PNG\r\n\x1a\n"]],
  ["image/gif", "gif", ["GIF87a", "GIF89a"]],
];

/** The format of an image by its first bytes, whatever its name says; null for any but JPEG, PNG and GIF (spec, Limits). */
export function imageFormat(bytes: Buffer): { type: string; extension: string } | null {
  const head = bytes.toString("latin1", 0, 8);
  for (const [type, extension, leading] of signatures) {
    if (leading.some((text) => head.startsWith(text))) return { type, extension };
  }
  return null;
}
