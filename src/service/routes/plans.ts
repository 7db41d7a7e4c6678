import { z } from "zod";

import { planSchema } from "../resources/plan.ts";
import { defineEndpoint } from "./endpoint.ts";
import { booleanText, listOf, pageQuery, sortQuery } from "./list-query.ts";
import { idParam, noBody, noParams, noQuery } from "./shared.ts";

export const listPlans = defineEndpoint({
  name: "listPlans",
  method: "GET",
  path: "/plans",
  summary: "List plans",
  permission: "plans:read",
  idempotency: "none",
  params: noParams,
  query: pageQuery.extend(sortQuery("name", "amount").shape).extend({
    search: z.string().max(200).optional(),
    active: booleanText,
  }),
  body: noBody,
  status: 200,
  answer: listOf(planSchema),
  errors: [],
});

export const getPlan = defineEndpoint({
  name: "getPlan",
  method: "GET",
  path: "/plans/{id}",
  summary: "Retrieve a plan",
  permission: "plans:read",
  idempotency: "none",
  params: idParam,
  query: noQuery,
  body: noBody,
  status: 200,
  answer: planSchema,
  errors: ["resource_not_found"],
});
