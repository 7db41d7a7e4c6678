import { expect, test } from "vitest";
import { createEncryption } from "../../src/platform/encryption.ts";
import { ConfigurationError, TallyhookError } from "../../src/platform/errors.ts";

const [oldKey, newKey] = ["0a".repeat(32), "F1".repeat(32)];

test.each(["", "whsec_abc", "ä€\u{1F511}", "x".repeat(10_000)])("gives %j back", (plain) => {
  const encryption = createEncryption({ current: oldKey });
  const encrypted = encryption.encrypt(plain);
  expect(encrypted.keyId).toBe(encryption.keyId);
  expect(encryption.decrypt(encrypted)).toBe(plain);
});

test("the same text is never encrypted to the same bytes, nor to readable ones", () => {
  const { encrypt } = createEncryption({ current: oldKey });
  const [one, two] = [encrypt("whsec_secret").ciphertext, encrypt("whsec_secret").ciphertext];
  expect(one.equals(two)).toBe(false);
  expect(one.includes("secret")).toBe(false);
});

test("after a change of the key the old texts can be read and new ones bear the new key", () => {
  const before = createEncryption({ current: oldKey });
  const after = createEncryption({ current: newKey, previous: [oldKey] });
  expect(after.decrypt(before.encrypt("kept"))).toBe("kept");
  expect(after.encrypt("new").keyId).toBe(createEncryption({ current: newKey }).keyId);
  expect(after.keyId).not.toBe(before.keyId);
});

test("a text under a key that is not configured names the key and what to set", () => {
  const encrypted = createEncryption({ current: oldKey }).encrypt("lost");
  const decrypt = () => createEncryption({ current: newKey }).decrypt(encrypted);
  expect(decrypt).toThrow(TallyhookError);
  expect(decrypt).toThrow(new RegExp(`${encrypted.keyId}.*TALLYHOOK_ENCRYPTION_KEY`));
});

test("altered, shortened and exchanged bytes are refused", () => {
  const encryption = createEncryption({ current: oldKey, previous: [newKey] });
  const { keyId, ciphertext } = encryption.encrypt("whsec_secret");
  for (let i = 0; i < ciphertext.length; i++) {
    const altered = Buffer.from(ciphertext);
    altered.writeUInt8(altered.readUInt8(i) ^ 1, i);
    expect(() => encryption.decrypt({ keyId, ciphertext: altered })).toThrow(TallyhookError);
    const short = ciphertext.subarray(0, i);
    expect(() => encryption.decrypt({ keyId, ciphertext: short })).toThrow(TallyhookError);
  }
  const otherKeyId = createEncryption({ current: newKey }).keyId;
  expect(() => encryption.decrypt({ keyId: otherKeyId, ciphertext })).toThrow(TallyhookError);
});

test.each(["", "0a", `${"0a".repeat(31)}0g`, "0a".repeat(33)])("the key %j is refused", (key) => {
  expect(() => createEncryption({ current: key })).toThrow(ConfigurationError);
  expect(() => createEncryption({ current: oldKey, previous: [key] })).toThrow(ConfigurationError);
});
