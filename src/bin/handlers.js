/**
 * `tallyhook/handlers` at run time, for handlers outside of src/handlers/. Its types are those of
 * src/dispatch/define-handler.ts. It imports nothing, so that it can be loaded beside the build and beside the sources,
 * and as a CommonJS module, too. What it marks is checked when it is loaded.
 */
export const defineHandler = (options) => ({
  ...options,
  [Symbol.for("tallyhook.handler")]: true,
});

export class RetryLater extends Error {
  [Symbol.for("tallyhook.retry-later")] = true;

  constructor(afterMs) {
    super(`to be run again in ${afterMs} ms`);
    this.name = "RetryLater";
    this.afterMs = afterMs;
  }
}
