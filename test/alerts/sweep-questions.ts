import { coreQuestions } from "../../src/parts/alerts/run-alerts.ts";
import { listConsumers } from "../../src/parts/delivery/consumers.ts";
import { lastFullAnswerStart } from "../../src/parts/reconcile/runs/runs.ts";

/** What a sweep asks of core, and of the parts that most tests have. */
export const sweepQuestions = { ...coreQuestions, lastFullAnswerStart, feedConsumers: listConsumers };
