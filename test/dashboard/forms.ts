import type { Knex } from "knex";
import { type DashboardStand, send } from "./dashboard-stand.ts";
import { sampleAddresses, sampleRoutes } from "./page-samples.ts";

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
const formsOn = (page: string): Form[] =>
  [...page.matchAll(/<form\b([^>]*\smethod="post"[^>]*)>(.*?)<\/form>/gs)].map(([, tag = "", body = ""]) => ({
    action: attribute(tag, "action"),
    fields: fieldsIn(body),
  }));

function fieldsIn(body: string): Form["fields"] {
  const fields: Record<string, string> = {};
  const found = body.matchAll(/<(input|button)\b([^>]*)>|<(?:textarea|select)\b([^>]*)>(.*?)<\/(?:textarea|select)>/gs);
  for (const [, , empty, tag = empty ?? "", content = ""] of found) {
    const name = attribute(tag, "name");
    const chosen = /<option\b[^>]*\svalue="([^"]+)"/.exec(content)?.[1];
    // Of several boxes the first is chosen.
    if (name !== "") fields[name] ??= chosen ?? (attribute(tag, "value") || (filledIn[name] ?? ""));
  }
  return fields;
}

const attribute = (tag: string, name: string): string => new RegExp(`\\s${name}="([^"]*)"`).exec(tag)?.[1] ?? "";

/** A route that takes a form, with the form that a page shows for it, and that page; null where none shows one. */
export interface FormTarget {
  path: string;
  page: string | null;
  form: Form;
}

/** Every route of a dashboard on the filled database that takes a form. */
export async function formTargets(
  { url, groups }: Pick<DashboardStand, "url" | "groups">,
  db: Knex,
  cookie: string,
): Promise<FormTarget[]> {
  const shown: { page: string; form: Form }[] = [];
  for (const page of await sampleAddresses(db, groups)) {
    for (const form of await formsAt(`${url}${page}`, cookie)) shown.push({ page, form });
  }
  const routes = await sampleRoutes(db, groups);
  return routes
    .filter(({ method }) => method === "POST")
    .map(({ path, address }) => {
      const pattern = new RegExp(`^${path.replaceAll(/:\w+/g, "[^/]+")}$`);
      const found = shown.find(({ form }) => pattern.test(form.action));
      return { path, page: null, form: { action: address ?? path, fields: {} }, ...found };
    });
}

export const formsAt = async (url: string, cookie: string): Promise<Form[]> =>
  formsOn(await (await send(url, { cookie })).text());
