import { createCipheriv, createDecipheriv, createHash, randomBytes, randomUUID } from "node:crypto";
import { link, rm } from "node:fs/promises";
import { join } from "node:path";
import { ConfigurationError, TallyhookError } from "./errors.ts";
import { makeDirectory, readIfExists, writePrivate } from "./files.ts";
import { registerSecret } from "./redaction.ts";

export interface EncryptedText {
  /** The id of the key that was used, stored with the ciphertext so that keys can be rotated. */
  keyId: string;
  /** 12 bytes nonce, 16 bytes tag, then the encrypted text. */
  ciphertext: Buffer;
}

export interface Encryption {
  /** The id of the key that `encrypt` uses; rows with another one can be encrypted again. */
  readonly keyId: string;
  encrypt(plain: string): EncryptedText;
  /** Throws `TallyhookError` when the key is unknown or the bytes were altered. */
  decrypt(encrypted: EncryptedText): string;
}

const algorithm = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;

/**
 * AES-256-GCM under `current`; texts encrypted under one of `previous` can still be decrypted. Keys are 64 hex digits.
 * The key id is bound to the ciphertext as additional data. Registers the keys, and every text that is encrypted or
 * decrypted, as secrets, so that no log shows them.
 */
export function createEncryption(keys: { current: string; previous?: readonly string[] }): Encryption {
  const current = readKey(keys.current);
  const known = new Map([current, ...(keys.previous ?? []).map(readKey)].map((key) => [key.id, key]));

  return {
    keyId: current.id,
    encrypt(plain) {
      registerSecret(plain);
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv(algorithm, current.bytes, nonce);
      cipher.setAAD(Buffer.from(current.id));
      const body = Buffer.concat([cipher.update(plain, "utf8"), cipher.final()]);
      return { keyId: current.id, ciphertext: Buffer.concat([nonce, cipher.getAuthTag(), body]) };
    },
    decrypt({ keyId, ciphertext }) {
      const key = known.get(keyId);
      if (key === undefined) {
        throw new TallyhookError(
          `A secret was encrypted with the key ${keyId}, which is not configured. ` +
            "Set TALLYHOOK_ENCRYPTION_KEY to the key that was in use when it was stored.",
        );
      }
      try {
        const nonce = ciphertext.subarray(0, nonceBytes);
        const tag = ciphertext.subarray(nonceBytes, nonceBytes + tagBytes);
        const decipher = createDecipheriv(algorithm, key.bytes, nonce, { authTagLength: tagBytes });
        decipher.setAAD(Buffer.from(keyId));
        decipher.setAuthTag(tag);
        const body = ciphertext.subarray(nonceBytes + tagBytes);
        const plain = Buffer.concat([decipher.update(body), decipher.final()]).toString("utf8");
        registerSecret(plain);
        return plain;
      } catch (cause) {
        throw new TallyhookError(
          `A stored secret cannot be decrypted with the key ${keyId}: its bytes were altered or cut short. ` +
            "Restore them from a backup, or add the secret again.",
          { cause },
        );
      }
    },
  };
}

function readKey(hex: string): { id: string; bytes: Buffer } {
  if (!/^[0-9a-f]{64}$/i.test(hex)) {
    throw new ConfigurationError("An encryption key must be 64 hex digits (make one with: openssl rand -hex 32).");
  }
  registerSecret(hex);
  const bytes = Buffer.from(hex, "hex");
  const id = createHash("sha256").update("tallyhook key id").update(bytes).digest("hex").slice(0, 16);
  return { id, bytes };
}

/**
 * The encryption key of an installation on the embedded defaults. Generated once, with mode 600, in the data directory;
 * every later call returns the same, also when several processes start together. 64 hex digits.
 */
export async function ensureLocalKey(dataDir: string): Promise<string> {
  const path = join(dataDir, "encryption-key");
  const own = `${path}.${randomUUID()}`;
  await makeDirectory(dataDir);
  try {
    await writePrivate(own, `${randomBytes(32).toString("hex")}\n`);
    // Fails when a key exists already. The existing file is complete, since a link appears as a whole.
    await link(own, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    await rm(own, { force: true });
  }
  const key = (await readIfExists(path))?.trim() ?? "";
  if (!/^[0-9a-f]{64}$/.test(key)) {
    throw new ConfigurationError(
      `${path} should hold 64 hex digits. Restore the original key: a new one cannot decrypt the stored secrets.`,
    );
  }
  return key;
}
