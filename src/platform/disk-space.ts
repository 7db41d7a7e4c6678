import { statfs } from "node:fs/promises";

/** Free space on the disk of a folder, for programs without root's reserve. */
export interface DiskSpace {
  folder: string;
  freeBytes: number;
  totalBytes: number;
}

/** Null where the system does not report it, or there is no such folder. */
export async function readDiskSpace(folder: string): Promise<DiskSpace | null> {
  try {
    const { bavail, blocks, bsize } = await statfs(folder);
    return blocks === 0 ? null : { folder, freeBytes: bavail * bsize, totalBytes: blocks * bsize };
  } catch {
    return null;
  }
}

/** In percent, rounded down. */
export const freePercent = ({ freeBytes, totalBytes }: DiskSpace): number => Math.floor((100 * freeBytes) / totalBytes);

/** Such as `1.4 GB of 20.0 GB (7 %)`. */
export const freeText = (space: DiskSpace): string =>
  `${gigabytes(space.freeBytes)} of ${gigabytes(space.totalBytes)} (${freePercent(space)} %)`;

const gigabytes = (bytes: number): string => `${(bytes / 1_000_000_000).toFixed(1)} GB`;
