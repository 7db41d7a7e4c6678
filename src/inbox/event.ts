/** The longest text that is taken out of an event into a column of its own. */
export const maxExtractLength = 255;

/** An event whose signature held: its exact bytes, and what could be read of them. */
export interface VerifiedEvent {
  raw: Buffer;
  /** Which signing secret matched. */
  secretId: string;
  /** The envelope's id, `sha256:<hex>` where it has none or one that no column should hold. */
  eventId: string;
  type: string | null;
  apiVersion: string | null;
  /** In the fixed form of `canonicalTimestamp`. */
  createdAt: string | null;
}

export interface Appended {
  eventId: string;
  /** The same bytes under the same id were already there. */
  duplicate: boolean;
}
