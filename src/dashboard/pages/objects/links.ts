import { type Html, html } from "../../../platform/html.ts";
import { shortId } from "../../parts/id.ts";

/** The address of an object's page. Pure. */
export const objectPath = (resource: string, id: string): string =>
  `/objects/${encodeURIComponent(resource)}/${encodeURIComponent(id)}`;

/** A link to an object by its id. Pure. */
export const objectLink = (resource: string, id: string): Html =>
  html`<a href="${objectPath(resource, id)}">${shortId(id)}</a>`;
