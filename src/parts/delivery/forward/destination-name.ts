const prefix = "forward:";

/** The name under which the dispatch knows a destination. No handler can have it. Pure. */
export const recipientName = (name: string): string => prefix + name;

/** The destination that the dispatch knows by this name; null for a handler. Pure. */
export const destinationNamed = (recipient: string): string | null =>
  recipient.startsWith(prefix) ? recipient.slice(prefix.length) : null;
