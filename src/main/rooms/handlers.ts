import { readDownHosts } from "../../parts/delivery/dispatch/handler-hosts.ts";
import { dispatchQuestions } from "./dispatch-questions.ts";
import type { HandlersRoom } from "./room-interfaces.ts";

/** Loaded on demand: a receiver runs no handlers. */
export const handlersRoom: HandlersRoom = {
  run: async (runtime, service) => {
    await (await import("../../parts/delivery/handlers/supervised-handlers.ts")).superviseOwnHandlers(runtime, service);
  },
  check: async (runtime) => (await import("../../parts/delivery/handlers/check-handlers.ts")).checkHandlers(runtime),
  questions: { ...dispatchQuestions, downHosts: readDownHosts },
};
