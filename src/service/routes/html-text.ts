/** How a tag, a closing tag, a comment or a declaration begins. */
const tagStart = /<[a-z!/]/i;
/** A tag with an attribute: a browser shows it as one even where its end is missing. */
const openTagWithAttribute = /<[a-z][a-z0-9-]*[\s/]+[a-z-]+\s*=/i;

/**
 * Whether a text holds HTML (spec, Errors: `contains_html`); `a < b` is text. Looks at each character a bounded number of times,
 * since a text may be as long as a request.
 */
export function holdsHtml(text: string): boolean {
  const start = text.search(tagStart);
  if (start < 0) return false;
  return text.lastIndexOf(">") > start || openTagWithAttribute.test(text);
}
