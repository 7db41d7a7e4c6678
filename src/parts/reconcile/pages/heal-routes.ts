import type { ServiceClient } from "../../../core/client/service-client.ts";
import { ServiceError, ServiceRefusedError } from "../../../core/client/service-errors.ts";
import type { ObjectKey } from "../../../core/mirror/snapshot.ts";
import { ActRefused } from "../../../app/people/act.ts";
import { recordAct } from "../../../app/people/audit.ts";
import { ConfigurationError } from "../../../platform/errors.ts";
import { html } from "../../../platform/html.ts";
import { withoutControls } from "../../../platform/readable-text.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import type { Random } from "../../../platform/random.ts";
import { healing } from "../acts.ts";
import { slicedResources } from "../coverage/slice.ts";
import { findingsOfObject } from "../findings/search-findings.ts";
import { type HealProposal, proposeHeal, versionToHeal } from "../heal-object.ts";
import type { RunListener } from "../../../app/run-listener.ts";
import { actRoute, pageErrorOf } from "../../../app/dashboard/act-route.ts";
import { quoted } from "../../../platform/command-line.ts";
import { versionOf } from "../../../app/dashboard/elements/decided-on.ts";
import { type PageDeps, PageError, type Route, type Visitor } from "../../../app/dashboard/route.ts";
import { comparePath } from "./finding-view.ts";
import { framed } from "./frame.ts";
import { type HealPage, healCommand, renderHeal, renderOutdated } from "./heal-view.ts";

/** The dependencies of reading from the service and healing, beyond `PageDeps`. */
export interface HealTools {
  client: Pick<ServiceClient, "get">;
  random: Random;
  listener: RunListener;
}

/** A page answers within this, whether the service does or not. */
const serviceTimeoutMs = 5_000;

export const healRoutes = (tools: () => Promise<HealTools>): readonly Route[] => [
  {
    method: "GET",
    path: "/reconciliation/heal/:resource/:id",
    // A visitor who may not heal sees the differences; without `person:read`, personal data shows only that it differs.
    access: "status:read",
    async answer(deps, { params, visitor, actor }) {
      const object = objectOf(params);
      const proposal = await propose(deps, await tools(), object);
      const page = await pageOf(deps, visitor, proposal);
      if (page.seesPersons) {
        await inTransaction(deps.db, (trx) =>
          recordAct(trx, actor, {
            action: "object.compared",
            subject: { kind: object.resource, id: object.id },
          }),
        );
      }
      return {
        kind: "page",
        title: "Mirror and service now",
        body: framed("Findings", renderHeal(page)),
        command: healCommand(object, quoted),
      };
    },
  },
  actRoute({
    act: healing,
    path: "/reconciliation/heal/:resource/:id",
    async deps(deps) {
      const { client, random, listener } = await tools();
      const { db, log } = deps;
      const proposing = (object: ObjectKey) => propose(deps, { client }, object);
      return { db, log, random, listener, propose: proposing };
    },
    back: ({ resource, id }) => comparePath(resource, id),
    async now(now, deps, { visitor, form }) {
      const proposal = now as HealProposal;
      const page = await pageOf(deps, visitor, proposal, form.get("reason") ?? "");
      // Persons' data is shown where it is recorded: by the page itself.
      return html`${renderOutdated(changedSince(form, proposal))}${renderHeal({ ...page, seesPersons: false })}`;
    },
    done: (_, { resource, id }, { actor }) => ({
      to: comparePath(resource, id),
      notice: `The ${resource} is now as the service shows it; healed by ${actor.name}.`,
    }),
  }),
];

/** Throws `PageError` where there is no such kind of object. */
function objectOf(params: Readonly<Record<string, string>>): ObjectKey {
  const resource = slicedResources.find((known) => known === params["resource"]);
  if (resource !== undefined) return { resource, id: params["id"] ?? "" };
  throw new PageError(404, `There is no such kind of object. Known are ${slicedResources.join(", ")}.`);
}

/** Reads both sides. Throws `PageError` where the service does not answer, or its answer cannot be written. */
async function propose(
  { db, clock }: PageDeps,
  { client }: Pick<HealTools, "client">,
  object: ObjectKey,
): Promise<HealProposal> {
  const signal = AbortSignal.timeout(serviceTimeoutMs);
  try {
    return await proposeHeal({ db, client, clock }, object, { signal });
  } catch (err) {
    throw explained(err, signal.aborted);
  }
}

/** The fault in words for a person, where the person can do something about it. */
function explained(err: unknown, isLate: boolean): unknown {
  if (isLate) {
    const message = `The service gave no usable answer within ${serviceTimeoutMs / 1_000} seconds, so nothing can be compared. Try again later.`;
    return new PageError(502, message, { cause: err });
  }
  if (err instanceof ActRefused) return pageErrorOf(err);
  if (err instanceof ConfigurationError) {
    return new PageError(502, withoutControls(err.message), { cause: err });
  }
  if (err instanceof ServiceError) {
    const advice =
      err instanceof ServiceRefusedError
        ? "The service refused the request: check SVC_API_KEY, and what the key may do."
        : "The service gave no usable answer, so nothing can be compared. Try again later.";
    return new PageError(502, advice, {
      cause: err,
      details: html`<p class="hint">${withoutControls(err.message)}</p>`,
    });
  }
  return err;
}

async function pageOf(
  { db, timeZone }: PageDeps,
  { permissions }: Visitor,
  proposal: HealProposal,
  reason = "",
): Promise<HealPage> {
  return {
    proposal,
    version: versionToHeal(proposal),
    findings: await findingsOfObject(db, proposal.object),
    mayHeal: permissions.has("object:heal"),
    seesPersons: permissions.has("person:read"),
    reason,
    timeZone,
  };
}

/** The sides that changed after the form was made. */
function changedSince(form: URLSearchParams, proposal: HealProposal) {
  const [seenMirror, seenService] = versionOf(form).split(".");
  const [mirror, service] = versionToHeal(proposal).split(".");
  return { mirror: seenMirror !== mirror, service: seenService !== service };
}
