/** PKWARE APPNOTE 4.3.7 and 4.3.12: signature, where the time stands, where name, extra and comment lengths stand. */
const centralHeader = { signature: 0x02014b50, length: 46, time: 12, localOffset: 42 };
const endRecord = { signature: 0x06054b50, length: 22, entries: 10, offset: 16 };
const localTime = 10;
/** 1980-01-01 00:00, the earliest that the format knows. */
const noTime = 0x00210000;

/** The same archive without the time of its making, so that the same rows give the same bytes. */
export function withoutZipTimes(archive: Buffer): Buffer {
  const zip = Buffer.from(archive);
  let end = zip.length - endRecord.length;
  while (end >= 0 && zip.readUInt32LE(end) !== endRecord.signature) end--;
  if (end < 0) throw new Error("not a zip archive");
  let at = zip.readUInt32LE(end + endRecord.offset);
  for (let left = zip.readUInt16LE(end + endRecord.entries); left > 0; left--) {
    if (zip.readUInt32LE(at) !== centralHeader.signature) throw new Error("a zip entry is broken");
    zip.writeUInt32LE(noTime, at + centralHeader.time);
    zip.writeUInt32LE(noTime, zip.readUInt32LE(at + centralHeader.localOffset) + localTime);
    const lengths = [28, 30, 32].map((field) => zip.readUInt16LE(at + field));
    at += centralHeader.length + lengths.reduce((sum, length) => sum + length, 0);
  }
  return zip;
}
