import { handlerOf } from "../../parts/delivery/dispatch/feed-place.ts";
import { readHandlersHealth } from "../../parts/delivery/dispatch/handler-health.ts";
import type { DispatchQuestions } from "./room-interfaces.ts";

/** Of handlers and destinations alike: each of the two rooms may be there without the other. */
export const dispatchQuestions: DispatchQuestions = {
  handlersHealth: readHandlersHealth,
  handlerOf,
};
