/** One line of what comes from outside, which may hold control characters that a terminal would obey. */
export const visible = (text: string): string => text.replaceAll(/\p{Cc}/gu, "\ufffd");

/** For a text of its own, which keeps its lines. */
export const visibleLines = (text: string): string => text.split("\n").map(visible).join("\n");
