import type { ServiceClient } from "../../../client/service-client.ts";
import { ServiceError, ServiceRefusedError } from "../../../client/service-errors.ts";
import type { ObjectKey } from "../../../mirror/snapshot.ts";
import { recordAct } from "../../../people/audit.ts";
import { ConfigurationError, UsageError } from "../../../platform/errors.ts";
import { paragraph } from "../../../platform/free-text.ts";
import { html } from "../../../platform/html.ts";
import { withoutControls } from "../../../platform/readable-text.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import type { Random } from "../../../platform/random.ts";
import { slicedResources } from "../../../reconcile/coverage/slice.ts";
import { findingsOfObject, isHealedByHand } from "../../../reconcile/findings/search-findings.ts";
import {
  type HealProposal,
  applyHeal,
  proposalVersion,
  proposeHeal,
} from "../../../reconcile/heal-object.ts";
import type { RunListener } from "../../../reconcile/run-listener.ts";
import { quoted } from "../../parts/command.ts";
import { outdated, versionOf } from "../../parts/decided-on.ts";
import { requiredText } from "../../parts/form-text.ts";
import { type PageDeps, PageError, type Route, type Visitor } from "../../route.ts";
import { comparePath } from "./finding-view.ts";
import { framed } from "./frame.ts";
import { type HealPage, healCommand, renderHeal, renderOutdated } from "./heal-view.ts";

/** What reading from the service and writing what it shows needs beyond `PageDeps`. */
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
    // Who may not heal sees what differs; who may not see persons sees of their data that it differs.
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
  {
    method: "POST",
    path: "/reconciliation/heal/:resource/:id",
    access: "object:heal",
    async answer(deps, { params, form, visitor, actor }) {
      const object = objectOf(params);
      const reason = requiredText(form, "reason", paragraph);
      const { client, random, listener } = await tools();
      const proposal = await propose(deps, { client }, object);
      await refuseOutdated(deps, visitor, proposal, { form, reason });
      const { db, log } = deps;
      const closing = (await findingsOfObject(db, object)).filter(isHealedByHand);
      const isDone = await applyHeal(
        { db, log, random, listener },
        proposal,
        { by: actor.name, reason },
        {
          within: (trx) =>
            recordAct(trx, actor, {
              action: "object.healed",
              subject: { kind: object.resource, id: object.id },
              before: {
                sha256: proposal.seen.sha256,
                findings: closing.map(({ id }) => Number(id)),
              },
              after: { fields: proposal.differences.length },
            }),
        },
      ).catch((err: unknown) => {
        if (!(err instanceof UsageError)) throw err;
        throw new PageError(422, withoutControls(err.message), { cause: err });
      });
      if (!isDone) {
        const now = await propose(deps, { client }, object);
        await refuseOutdated(deps, visitor, now, { form, reason });
        throw outdated("The mirror's row");
      }
      return {
        kind: "redirect",
        to: comparePath(object.resource, object.id),
        notice: `The ${object.resource} is now as the service shows it; healed by ${actor.name}.`,
      };
    },
  },
];

/** Throws `PageError` where there is no such kind of object. */
function objectOf(params: Readonly<Record<string, string>>): ObjectKey {
  const resource = slicedResources.find((known) => known === params["resource"]);
  if (resource !== undefined) return { resource, id: params["id"] ?? "" };
  throw new PageError(
    404,
    `There is no such kind of object. Known are ${slicedResources.join(", ")}.`,
  );
}

/** Reads both sides now. Throws `PageError` where the service does not answer, or shows nothing that can be written. */
async function propose(
  { db, clock }: PageDeps,
  { client }: Pick<HealTools, "client">,
  object: ObjectKey,
): Promise<HealProposal> {
  const signal = AbortSignal.timeout(serviceTimeoutMs);
  try {
    return await proposeHeal({ db, client, clock }, object, { signal });
  } catch (err) {
    throw signal.aborted ? notAnswered(err) : explained(err);
  }
}

const notAnswered = (cause: unknown): PageError =>
  new PageError(
    502,
    `The service gave no usable answer within ${serviceTimeoutMs / 1_000} seconds, so nothing can be compared. Try again later.`,
    { cause },
  );

/** What went wrong, for a person, where they can do something about it. */
function explained(err: unknown): unknown {
  if (err instanceof UsageError) {
    return new PageError(404, withoutControls(err.message), { cause: err });
  }
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
  const { mirror, service } = proposalVersion(proposal);
  return {
    proposal,
    version: `${mirror}.${service}`,
    findings: await findingsOfObject(db, proposal.object),
    mayHeal: permissions.has("object:heal"),
    seesPersons: permissions.has("person:read"),
    reason,
    timeZone,
  };
}

/** Throws `PageError` where the form was decided on another proposal; it shows the one of now. */
async function refuseOutdated(
  deps: PageDeps,
  visitor: Visitor,
  proposal: HealProposal,
  { form, reason }: { form: URLSearchParams; reason: string },
): Promise<void> {
  const [seenMirror, seenService] = versionOf(form).split(".");
  const { mirror, service } = proposalVersion(proposal);
  const changed = { mirror: seenMirror !== mirror, service: seenService !== service };
  if (!changed.mirror && !changed.service) return;
  // Persons' data is shown where it is recorded: by the page itself.
  const page = { ...(await pageOf(deps, visitor, proposal, reason)), seesPersons: false };
  throw outdated("The object", html`${renderOutdated(changed)}${renderHeal(page)}`);
}
