import type { Permission } from "../../../people/permissions.ts";
import { type Html, html } from "../../../../platform/html.ts";
import { tabs as tabsOf } from "../../elements/tabs.ts";
import type { Visitor } from "../../route.ts";

interface Section {
  path: string;
  name: string;
  access: Permission;
  about: string;
}

/** The sections of Admin, in the order of its tabs. */
const sections: readonly Section[] = [
  {
    path: "/admin/users",
    name: "Users",
    access: "account:read",
    about: "Accounts and their roles.",
  },
  {
    path: "/admin/sessions",
    name: "Sessions",
    access: "account:read",
    about: "Open sessions and their addresses.",
  },
  {
    path: "/admin/audit",
    name: "Audit",
    access: "audit:read",
    about: "Acts of people, here and on the command line.",
  },
  {
    path: "/admin/settings",
    name: "Settings",
    access: "setting:read",
    about: "Every setting of this process, and where it comes from.",
  },
  {
    path: "/admin/doctor",
    name: "Doctor",
    access: "setting:read",
    about: "Whether everything that a deployment needs is there, and what to do if not.",
  },
];

const sectionsOf = ({ permissions }: Visitor): Section[] => sections.filter(({ access }) => permissions.has(access));

/** Links to the parts that the visitor may see. */
export const tabs = (visitor: Visitor, current: string): Html => tabsOf("Admin", sectionsOf(visitor), current);

export const renderSections = (visitor: Visitor): Html =>
  html`<ul class="cards plain-list">
    ${sectionsOf(visitor).map(
      ({ path, name, about }) =>
        html`<li class="card">
          <h2><a href="${path}">${name}</a></h2>
          <p>${about}</p>
        </li>`,
    )}
  </ul>`;
