import { readNewest } from "../../../core/mirror/changes/read-changes.ts";
import { type ListedObject, findChargebacks, listRelated, relations } from "../../../core/mirror/look-up.ts";
import { failedEventsOf } from "../../../core/inbox/queries.ts";
import { isResource } from "../../../core/mirror/resources.ts";
import type { Resource } from "../../../core/mirror/snapshot.ts";
import { recordAct } from "../../../app/people/audit.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { type Html, html } from "../../../platform/html.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import type { Answers } from "../../../app/answers.ts";
import type { PageGroup } from "../../../app/dashboard/page-group.ts";
import { recordPersonRead } from "../../../app/dashboard/elements/personal.ts";
import { pageOf, pager } from "../../../app/dashboard/elements/paging.ts";
import { PageError, type Route } from "../../../app/dashboard/route.ts";
import { objectPath } from "../../../app/dashboard/elements/values.ts";
import { failedLines, mostFailed } from "./failed-events-view.ts";
import { renderFound, renderObjects, renderRecent } from "./list-view.ts";
import { renderChargeback, renderObject } from "./object-view.ts";
import { readObjectPage } from "./read-object-page.ts";
import { recognize, shown } from "./recognized.ts";
import { readSearch, search } from "./search.ts";
import { titleOf, titleOfObject } from "./titles.ts";

const pageSize = 50;
const recentChanges = 25;

const routesOf = (ask: Pick<Answers, "findingsOfObject">): readonly Route[] => [
  {
    method: "GET",
    path: "/objects",
    access: "status:read",
    async answer({ db, timeZone }, { visitor }) {
      const { changes } = await readNewest(db, { limit: recentChanges });
      const mayFindPersons = visitor.permissions.has("person:read");
      return {
        kind: "page",
        title: "Objects",
        body: renderRecent(changes.reverse(), { mayFindPersons, timeZone }),
        command: tallyhook(`changes --limit ${recentChanges}`),
      };
    },
  },
  {
    // The searched text may be an e-mail address, which must not appear in an address of the browser or in a log.
    method: "POST",
    path: "/objects/search",
    access: "status:read",
    async answer({ db, timeZone }, { form, visitor, actor }) {
      const wanted = readSearch(form.get("q") ?? "");
      if (wanted.text === "") return { kind: "redirect", to: "/objects" };
      const mayFindPersons = visitor.permissions.has("person:read");
      if (wanted.is === "e-mail address" && !mayFindPersons) {
        throw new PageError(
          403,
          "Searching by e-mail address requires the permission person:read. Search by order number, or ask a " +
            "person with the role support.",
        );
      }
      const after = form.get("after");
      const { rows, by, event, isCut } = await search(db, wanted, { mayFindPersons, after, limit: pageSize + 1 });
      const [only] = rows;
      const to =
        event !== null
          ? `/events/${event}`
          : only !== undefined && rows.length === 1 && after === null && !isCut
            ? objectPath(only.resource, only.id)
            : null;
      const recognized = await recognize(db, to === null ? rows.slice(0, pageSize) : [], {
        showsPersons: mayFindPersons,
      });
      if (by !== null || recognized.names.size > 0) {
        const recorded = { by: by ?? "number or id", hits: Math.min(rows.length, pageSize) };
        await inTransaction(db, (trx) => recordAct(trx, actor, { action: "person.searched", after: recorded }));
      }
      if (to !== null) return { kind: "redirect", to };
      return {
        kind: "page",
        title: "Objects",
        searched: wanted.typed,
        body: renderFound({
          found: pageOf<ListedObject>(rows, pageSize, ({ id }) => id),
          recognized,
          text: by === null ? shown(wanted.text) : null,
          query: wanted.typed,
          isCut,
          timeZone,
        }),
      };
    },
  },
  {
    method: "GET",
    path: "/objects/chargeback/:id",
    access: "status:read",
    async answer({ db, timeZone }, { params }) {
      const id = params["id"] ?? "";
      const [chargeback] = await findChargebacks(db, [id]);
      if (chargeback === undefined) {
        throw new PageError(
          404,
          `No chargeback of ${shown(id)} is known. A chargeback has the id of its order, or of its sale where it ` +
            "has no order.",
        );
      }
      return {
        kind: "page",
        title: titleOf("chargeback", `of ${shown(id)}`),
        body: renderChargeback(chargeback, timeZone),
        command: tallyhook("report chargebacks"),
      };
    },
  },
  {
    method: "GET",
    path: "/objects/:resource/:id",
    access: "status:read",
    async answer(deps, { params, query, visitor, actor }) {
      const key = requireKey(params);
      const page = await readObjectPage({ ...deps, ...ask }, { key, query, visitor });
      if (page === null) {
        const failed = await failedEventsOf(deps.db, key, mostFailed + 1);
        throw unknownObject(key, failedLines(failed, key.id, deps.timeZone));
      }
      if (visitor.permissions.has("person:read")) {
        await recordPersonRead(deps.db, actor, { kind: key.resource, id: key.id });
      }
      return {
        kind: "page",
        title: titleOfObject(page),
        body: renderObject(page),
      };
    },
  },
  {
    method: "GET",
    path: "/objects/:resource/:id/:relation",
    access: "status:read",
    async answer({ db, timeZone }, { params, query, visitor, actor }) {
      const { resource, id } = requireKey(params);
      const relation = relations.find(({ of, name }) => of === resource && name === params["relation"]);
      if (relation === undefined) throw new PageError(404, "There is no page at this address.");
      const after = query.get("before");
      const related = pageOf(
        await listRelated(db, relation, id, { after, limit: pageSize + 1 }),
        pageSize,
        (row) => row.id,
      );
      const path = objectPath(resource, id);
      const showsPersons = visitor.permissions.has("person:read");
      if (showsPersons) await recordPersonRead(db, actor, { kind: resource, id });
      return {
        kind: "page",
        title: titleOf(resource, `${shown(id)}: ${relation.name}`),
        body: html`<p><a href="${path}">Back to the ${resource}</a></p>
          ${renderObjects(related.rows, {
            caption: "Newest first",
            empty: html`No ${relation.name} are known.`,
            recognized: await recognize(db, related.rows, { showsPersons }),
            timeZone,
          })}
          ${pager(`${path}/${relation.name}`, query, related.older)}`,
      };
    },
  },
];

/** The service's objects: found, explained field by field, and as they were known at any time. */
export const objectPagesOf = (ask: Pick<Answers, "findingsOfObject">): PageGroup => ({
  place: { path: "/objects", name: "Objects", access: "status:read", area: "Data" },
  search: {
    path: "/objects/search",
    access: "status:read",
    placeholder: "Order number, name, address, last four, id",
  },
  routes: routesOf(ask),
});

interface Key {
  resource: Resource;
  id: string;
}

function requireKey(params: Readonly<Record<string, string>>): Key {
  const { resource = "", id = "" } = params;
  if (isResource(resource)) return { resource, id };
  throw new PageError(404, "There is no page at this address. Search for the object on the page Objects.");
}

/** `failed`: events about it that were not applied. */
const unknownObject = ({ resource, id }: Key, failed: readonly Html[]): PageError =>
  new PageError(
    404,
    failed.length > 0
      ? `The mirror knows no ${resource} ${shown(id)}: its events could not be applied.`
      : `The mirror knows no ${resource} ${shown(id)}. Check the id. If the service has it, its webhook has not ` +
          "arrived: a reconciliation reads it.",
    {
      details: html`${
          failed.length > 0 &&
          html`<ul>
            ${failed.map((line) => html`<li>${line}</li>`)}
          </ul>`
        }
        <p>
          <a href="/objects">Search again</a>, or see
          <a href="/events?object=${encodeURIComponent(id)}">events about this id</a>.
        </p>`,
    },
  );
