/**
 * `tallyhook/handlers` at run time, for handlers outside of src/handlers/. Its types are those of
 * src/parts/delivery/dispatch/define-handler.ts. It imports nothing, so that it can be loaded beside the build and beside the sources,
 * and as a CommonJS module, too. What it marks is checked when it is loaded.
 */
export const defineHandler = (options) => ({
  ...options,
  [Symbol.for("tallyhook.handler")]: true,
});

export class RetryLater extends Error {
  [Symbol.for("tallyhook.retry-later")] = true;

  constructor(afterMs) {
    const isAnswer = typeof afterMs === "object" && afterMs !== null;
    super(isAnswer ? "to be run again when the answer says" : `to be run again in ${afterMs} ms`);
    this.name = "RetryLater";
    this.afterMs = isAnswer ? 60_000 : afterMs;
    this.answer = isAnswer
      ? { retryAfter: afterMs.headers.get("retry-after"), date: afterMs.headers.get("date") }
      : null;
  }
}
