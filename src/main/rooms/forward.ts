import { destinationNamed } from "../../parts/delivery/forward/destination-name.ts";
import { dispatchQuestions } from "./dispatch-questions.ts";
import type { ForwardRoom } from "./room-interfaces.ts";

/** Loaded on demand: a receiver forwards nothing. */
export const forwardRoom: ForwardRoom = {
  run: async (runtime) => (await import("../../parts/delivery/forward/run-forwarding.ts")).runForwarding(runtime),
  check: async (runtime) => (await import("../../parts/delivery/forward/check-forwarding.ts")).checkForwarding(runtime),
  questions: { ...dispatchQuestions, destinationOf: destinationNamed },
};
