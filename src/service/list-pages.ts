import type { ServiceAnswer } from "./http/call.ts";
import type { Lane } from "./http/lanes.ts";
import type { ServiceQuery } from "./http/request-path.ts";
import { listPageSchema } from "./list-page.ts";
import type { ListedObject } from "./list-page.ts";
import { ServiceAnswerError, ServiceRefusedError } from "./service-errors.ts";

export type ServicePage = {
  items: ListedObject[];
  /** False on the last page only. */
  hasMore: boolean;
  /** The `starting_after` of the following page; null on the last one. Good for resuming a walk. */
  nextCursor: string | null;
  date: Date;
  requestId: string | null;
};

type Reader = {
  get(path: string, query: ServiceQuery, options: WalkOptions): Promise<ServiceAnswer>;
};

type WalkOptions = { lane: Lane; deadlineMs?: number; signal?: AbortSignal };

/** A service that filters after it has cut a page shows empty ones; so many on end are a circle. */
const mostEmptyPages = 100;

/**
 * The pages of a list, one request at a time, until one says `has_more: false`: nothing else ends a
 * walk, neither a short page nor an absent cursor. The next page starts after `cursors.next`, or after
 * the last id where there is none. A page that says there is more but shows no way on is an error,
 * since stopping there would pass for the end, and so is one empty page after another. A cursor that is refused, also
 * as `resource_not_found` (its object is gone), throws `ServiceRefusedError`.
 *
 * Source: spec, Conventions (lists).
 */
export async function* walkPages(
  reader: Reader,
  path: string,
  query: ServiceQuery,
  options: WalkOptions,
): AsyncGenerator<ServicePage, void, undefined> {
  let cursor = query["starting_after"];
  for (let emptyPages = 0; ;) {
    const answer = await reader.get(path, { ...query, starting_after: cursor }, options);
    if (answer.status === 404 && cursor !== undefined) throw unknownCursor(path, answer);
    const page = readPage(path, answer);
    yield page;
    if (page.nextCursor === null) return;
    emptyPages = page.items.length === 0 ? emptyPages + 1 : 0;
    if (emptyPages === mostEmptyPages)
      throw badPage(path, answer, `${mostEmptyPages} pages on end are empty`);
    if (page.nextCursor === cursor) throw badPage(path, answer, "its cursor does not move");
    cursor = page.nextCursor;
  }
}

function readPage(path: string, answer: ServiceAnswer): ServicePage {
  const parsed = listPageSchema.safeParse(answer.body);
  if (answer.status !== 200 || !parsed.success)
    throw badPage(path, answer, "it is no page of a list");
  const { data, has_more: hasMore, cursors } = parsed.data;
  const nextCursor = hasMore ? (cursors?.next ?? data.at(-1)?.id ?? null) : null;
  if (hasMore && nextCursor === null)
    throw badPage(path, answer, "it has more but shows no cursor");
  return { items: data, hasMore, nextCursor, date: answer.date, requestId: answer.requestId };
}

const badPage = (path: string, answer: ServiceAnswer, problem: string): ServiceAnswerError =>
  new ServiceAnswerError(`cannot be walked: ${problem}`, requestOf(path, answer));

const unknownCursor = (path: string, answer: ServiceAnswer): ServiceRefusedError =>
  new ServiceRefusedError("the object to start after is unknown", requestOf(path, answer), {
    type: null,
    code: "resource_not_found",
    param: "starting_after",
    fieldErrors: [],
  });

const requestOf = (path: string, { status, requestId }: ServiceAnswer) => ({
  method: "GET",
  path,
  attempts: 1,
  status,
  requestId,
});
