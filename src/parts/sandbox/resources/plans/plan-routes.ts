import * as routes from "../../../../core/contract/resources/plans.ts";
import { plainAnswer } from "../../engine/answer.ts";
import { listAnswer } from "../../http/list.ts";
import { type Mounted, mounted } from "../../http/mount.ts";
import { find } from "../find.ts";

const list = mounted(routes.listPlans, (space, { query }) => {
  const search = query.search?.toLowerCase();
  return listAnswer(space, space.plans, query, {
    url: `/v1${routes.listPlans.path}`,
    show: (plan) => ({ ...plan }),
    test: (plan) =>
      (query.active === undefined || plan.active === query.active) &&
      (search === undefined || [plan.name, plan.plan_code, plan.description].join(" ").toLowerCase().includes(search)),
  });
});

const retrieve = mounted(routes.getPlan, (space, { params }, state) =>
  plainAnswer(200, find(state, space, "plans", params.id)),
);

export const planEndpoints: readonly Mounted[] = [list, retrieve];
