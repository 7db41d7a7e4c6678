import { TallyhookError } from "../../platform/errors.ts";

export type ServiceQuery = Readonly<Record<string, string | number | boolean | undefined>>;

/**
 * The path of one object, such as `/orders/<id>`, whatever its id holds. Throws for `.` and `..`,
 * which a server would read as another path, and for what is no text.
 */
export function objectPath(collection: `/${string}`, id: string): string {
  if (!isObjectId(id)) {
    throw new TallyhookError(
      `No path below ${collection} can be made of the id ${JSON.stringify(id)}.`,
    );
  }
  return `${collection}/${encodeURIComponent(id)}`;
}

/** Whether a path can be made of an id. */
export const isObjectId = (id: string): boolean =>
  id !== "" && id !== "." && id !== ".." && !/\p{Cs}/u.test(id);

export function withQuery(path: string, query: ServiceQuery): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) parameters.append(name, String(value));
  }
  const text = parameters.toString();
  return text === "" ? path : `${path}?${text}`;
}
