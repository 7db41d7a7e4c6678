const prefix = "handler:";

/** Under which a handler is a consumer of the feed. */
export const consumerOf = (handler: string): string => prefix + handler;

/** Which handler a consumer of the feed is; null for a reader of another kind. */
export const handlerOf = (consumer: string): string | null =>
  consumer.startsWith(prefix) ? consumer.slice(prefix.length) : null;
