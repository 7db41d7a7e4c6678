/**
 * The version of the interface that this program was written for. Sent with every request, so that an account that is
 * pinned to another version does not change what the program reads. The interface names no version: the date is assumed.
 */
export const serviceVersion = "2025-09-01";
