import type { IncomingMessage } from "node:http";

import { maxImageBytes } from "../../service/routes/product-images.ts";
import { Refusal } from "../refusal.ts";
import { readBytes } from "./read-body.ts";

/** What a form adds to its file. */
const formBytes = 65_536;

/** The file of an upload: in `multipart/form-data`, or the bytes alone. How the service takes it is not shown. */
export async function readUpload(request: IncomingMessage): Promise<Buffer> {
  const type = request.headers["content-type"] ?? "";
  const body = await readBytes(request, maxImageBytes + formBytes);
  if (!/^multipart\/form-data\b/i.test(type)) return body;
  const file = await firstFile(body, type);
  if (file === null) throw new Refusal("required_field", "The form has no file.", "image");
  return Buffer.from(await file.arrayBuffer());
}

/** Null when the form has none, or is broken. */
async function firstFile(body: Buffer, type: string): Promise<Blob | null> {
  try {
    // Advised against for what streams in; this body is complete, and its size is bounded.
    // oxlint-disable-next-line typescript/no-deprecated
    const form = await new Response(body, { headers: { "content-type": type } }).formData();
    return [...form.values()].find((value) => typeof value !== "string") ?? null;
  } catch {
    return null;
  }
}
