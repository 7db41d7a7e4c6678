import { readDownHosts } from "../../dispatch/handler-hosts.ts";
import { dispatchQuestions } from "./dispatch-questions.ts";
import type { HandlersRoom } from "./room-interfaces.ts";

/** Loaded on demand: a receiver runs no handlers. */
export const handlersRoom: HandlersRoom = {
  run: async (runtime, service) => {
    await (await import("../supervised-handlers.ts")).superviseOwnHandlers(runtime, service);
  },
  check: async (runtime) => (await import("../cli/doctor/handlers.ts")).checkHandlers(runtime),
  questions: { ...dispatchQuestions, downHosts: readDownHosts },
};
