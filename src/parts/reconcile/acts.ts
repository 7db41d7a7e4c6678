import type { Knex } from "knex";
import { findMisdated } from "../../core/mirror/misdated.ts";
import type { ObjectKey, Resource } from "../../core/mirror/snapshot.ts";
import { type Act, ActRefused, type ActSubject, actOn, outdated, recordOf } from "../../app/people/act.ts";
import { oneOf, reference, text } from "../../app/people/fields.ts";
import type { Clock } from "../../platform/clock.ts";
import { paragraph } from "../../platform/free-text.ts";
import { databaseNow } from "../../platform/postgres/database-clock.ts";
import { slicedResources } from "./coverage/slice.ts";
import { type FindingRow, acknowledgeFinding, findFinding } from "./findings/findings.ts";
import { findingVersion } from "./findings/search-findings.ts";
import { type MisdatedHeals, healMisdated } from "./heal-misdated.ts";
import { type HealDeps, type HealProposal, type ProposalDeps, applyHeal, versionToHeal } from "./heal-object.ts";

const findingSubject: ActSubject<FindingRow> = {
  kind: "finding",
  lock: (trx, given) => findingNamed(trx, given, { isLocked: true }),
  idOf: ({ id }) => id,
  version: findingVersion,
};

/** The finding of this number, written in one way alone: what people write about it is kept by this text. */
export const findingNamed = async (
  db: Knex,
  given: string,
  { isLocked = false }: { isLocked?: boolean } = {},
): Promise<FindingRow | null> => (/^[1-9]\d{0,14}$/.test(given) ? findFinding(db, Number(given), { isLocked }) : null);

/** No report fails because of it, until it changes, or heals and comes back. */
export const acknowledgingFinding = actOn(findingSubject, "finding", {
  name: "finding.acknowledged",
  permission: "case:write",
  fields: { finding: reference, note: text(paragraph) },
  async change(trx, { id, state }, { actor, input }, { clock }: { clock: Clock }) {
    if (state === "healed") {
      const message = `Finding ${id} is healed, so there is nothing to acknowledge.`;
      throw new ActRefused("hindered", message);
    }
    const said = { id: Number(id), by: actor, note: input.note, at: clock.now() };
    await acknowledgeFinding(trx, said);
    // The database's function has recorded it.
    return { done: { id }, record: null };
  },
});

interface Healing extends HealDeps {
  /** Reads both sides. */
  propose(object: ObjectKey): Promise<HealProposal>;
}

/** The mirror's row gets the service's present state, and the object's drift findings close. */
export const healing: Act<Healing, { resource: Resource; id: string; reason: string }, null> = {
  name: "object.healed",
  permission: "object:heal",
  fields: { resource: oneOf(slicedResources), id: reference, reason: text(paragraph) },
  async run(deps, call) {
    const { resource, id, reason } = call.input;
    const object = { resource, id };
    const proposal = await deps.propose(object);
    if (call.decidedOn !== null && call.decidedOn !== versionToHeal(proposal)) {
      throw outdated("The object", proposal);
    }
    const { seen, differences } = proposal;
    const decision = { by: call.actor.name, reason };
    const isDone = await applyHeal(deps, proposal, decision, {
      within: (trx, findings) =>
        recordOf(healing, call)(trx, {
          subject: { kind: resource, id },
          before: { sha256: seen.sha256, findings },
          after: { fields: differences.length },
        }),
    });
    if (!isDone) throw outdated("The mirror's row", await deps.propose(object));
    return null;
  },
};

interface HealingMisdated extends HealDeps, ProposalDeps {
  onProgress(done: number): void;
}

/**
 * All objects that are dated in the future get the service's present state. The version is a time: objects that waited
 * until then.
 */
export const healingMisdated: Act<HealingMisdated, { reason: string }, MisdatedHeals> = {
  name: "misdated.healed",
  permission: "object:heal",
  fields: { reason: text(paragraph) },
  async run(deps, call) {
    const { decidedOn } = call;
    const until = decidedOn === null ? await databaseNow(deps.db) : new Date(decidedOn);
    const count = (await findMisdated(deps.db))?.objects ?? 0;
    const decision = { by: call.actor.name, reason: call.input.reason };
    return healMisdated(deps, decision, {
      until,
      withFirst: (trx) => recordOf(healingMisdated, call)(trx, { after: { count } }),
      onProgress: (done) => deps.onProgress(done),
    });
  },
};
