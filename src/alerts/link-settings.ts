import { z } from "zod";
import { settingsObject, should } from "./setting-words.ts";

const words = should(
  'an address with {id} in its path or query, such as "https://admin.example.com/orders/{id}"',
);
const template = z.string(words).refine(isTemplate, words).optional();

/** Of each kind of object, its page; what is left out has no link. */
export const linkTemplates = settingsObject({
  order: template,
  subscription: template,
  customer: template,
  transaction: template,
}).prefault({});

export type LinkTemplates = z.infer<typeof linkTemplates>;

/** An id must not choose the host, nor stand in a part that is never sent. */
function isTemplate(text: string): boolean {
  const [one, other] = ["a", "b"].map((id) => text.replaceAll("{id}", id));
  if (one === undefined || other === undefined || one === other) return false;
  if (!URL.canParse(one) || !URL.canParse(other)) return false;
  const [first, second] = [new URL(one), new URL(other)];
  return (
    /^https?:$/.test(first.protocol) &&
    first.username + first.password === "" &&
    first.origin === second.origin &&
    first.pathname + first.search !== second.pathname + second.search
  );
}
