import { Zip, ZipDeflate } from "fflate";
import type { Write } from "../rendering.ts";

/** Files of an archive, one after the other. What was compressed is written at once, so that nothing piles up. */
export interface ZipStream {
  /** Begins a file; the one before is complete. */
  open(name: string): Promise<void>;
  append(text: string): Promise<void>;
  end(): Promise<void>;
}

/** The earliest that the format knows: the same content gives the same bytes, whenever it is made. */
const noTime = new Date(1980, 0, 1);
/** Two thirds of the work of the usual 6, and a few per cent larger. */
const compressionLevel = 3;

export function createZipStream(write: Write): ZipStream {
  let ready: Uint8Array[] = [];
  let file: ZipDeflate | undefined;
  const zip = new Zip((error, chunk) => {
    if (error !== null) throw error;
    ready.push(chunk);
  });
  const encoder = new TextEncoder();
  const nothing = new Uint8Array(0);

  async function flush(): Promise<void> {
    const chunk = Buffer.concat(ready);
    ready = [];
    if (chunk.length > 0) await write(chunk);
  }

  return {
    async open(name) {
      file?.push(nothing, true);
      file = new ZipDeflate(name, { level: compressionLevel });
      file.mtime = noTime;
      zip.add(file);
      await flush();
    },
    async append(text) {
      file?.push(encoder.encode(text));
      await flush();
    },
    async end() {
      file?.push(nothing, true);
      zip.end();
      await flush();
    },
  };
}
