import type { ServiceAnswer } from "./http/call.ts";
import type { Lane } from "./http/lanes.ts";
import type { ServiceQuery } from "./http/request-path.ts";
import { listPageSchema } from "./list-page.ts";
import type { ListedObject } from "./list-page.ts";
import { ServiceAnswerError } from "./service-errors.ts";

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

/**
 * The pages of a list, one request at a time, until one says `has_more: false`: nothing else ends a
 * walk, neither a short page nor an absent cursor. The next page starts after `cursors.next`, or after
 * the last id where there is none. A page that says there is more but shows no way on is an error,
 * since stopping there would pass for the end.
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
  for (;;) {
    const answer = await reader.get(path, { ...query, starting_after: cursor }, options);
    const page = readPage(path, answer);
    yield page;
    if (page.nextCursor === null) return;
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

function badPage(path: string, answer: ServiceAnswer, problem: string): ServiceAnswerError {
  return new ServiceAnswerError(`cannot be walked: ${problem}`, {
    method: "GET",
    path,
    attempts: 1,
    status: answer.status,
    requestId: answer.requestId,
  });
}
