import { exitCodes, TallyhookError } from "../platform/errors.ts";

/** What is stored of a closed month is not what was frozen. The message names what differs. */
export class BrokenSealError extends TallyhookError {
  override readonly exitCode = exitCodes.differs;
}
