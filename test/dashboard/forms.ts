/** A form that changes something, with the fields that a browser sends once they are filled in. */
export interface Form {
  action: string;
  fields: Readonly<Record<string, string>>;
}

/** Of the fields that a page leaves empty. */
const filledIn: Readonly<Record<string, string>> = {
  note: "seen",
  reason: "as agreed",
  text: "seen",
  email: "new@example.com",
};

/** The forms of a page, whose markup is the dashboard's own, that are sent with POST. Pure. */
export const formsOn = (page: string): Form[] =>
  [...page.matchAll(/<form\b([^>]*\smethod="post"[^>]*)>(.*?)<\/form>/gs)].map(
    ([, tag = "", body = ""]) => ({ action: attribute(tag, "action"), fields: fieldsIn(body) }),
  );

function fieldsIn(body: string): Form["fields"] {
  const fields: Record<string, string> = {};
  const found = body.matchAll(
    /<(input|button)\b([^>]*)>|<(?:textarea|select)\b([^>]*)>(.*?)<\/(?:textarea|select)>/gs,
  );
  for (const [, , empty, tag = empty ?? "", content = ""] of found) {
    const name = attribute(tag, "name");
    const chosen = /<option\b[^>]*\svalue="([^"]+)"/.exec(content)?.[1];
    // Of several boxes the first is chosen.
    if (name !== "") fields[name] ??= chosen ?? (attribute(tag, "value") || (filledIn[name] ?? ""));
  }
  return fields;
}

const attribute = (tag: string, name: string): string =>
  new RegExp(`\\s${name}="([^"]*)"`).exec(tag)?.[1] ?? "";
