const prefix = "forward:";

/** The name under which the dispatch knows a destination. No handler can have it. */
export const recipientName = (name: string): string => prefix + name;

/** The destination that the dispatch knows by this name; null for a handler. */
export const destinationNamed = (recipient: string): string | null =>
  recipient.startsWith(prefix) ? recipient.slice(prefix.length) : null;
