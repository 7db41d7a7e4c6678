import { type Html, html } from "../../../platform/html.ts";
import { withoutControls } from "../../../platform/readable-text.ts";
import { copyableId, shortId } from "./id.ts";

/** The address of an object's page. */
export const objectPath = (resource: string, id: string): string =>
  `/objects/${encodeURIComponent(resource)}/${encodeURIComponent(id)}`;

/** A link to an object by its id, which is cut where it is long. */
export const objectLink = (resource: string, id: string): Html =>
  html`<a href="${objectPath(resource, id)}">${shortId(id)}</a>`;

/** A link to an object by its whole id, which a press on a button copies. */
export const wholeObjectLink = (resource: string, id: string): Html =>
  copyableId(withoutControls(id), objectPath(resource, id));
