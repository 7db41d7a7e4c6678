const prefix = "handler:";

/** The name of a handler as a consumer of the feed. */
export const consumerOf = (handler: string): string => prefix + handler;

/** The handler behind a consumer of the feed; null for another kind of reader. */
export const handlerOf = (consumer: string): string | null =>
  consumer.startsWith(prefix) ? consumer.slice(prefix.length) : null;
