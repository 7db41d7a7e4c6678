import { destinationNamed } from "../../forward/destination-name.ts";
import { dispatchQuestions } from "./dispatch-questions.ts";
import type { ForwardRoom } from "./room-interfaces.ts";

/** Loaded on demand: a receiver forwards nothing. */
export const forwardRoom: ForwardRoom = {
  run: async (runtime) => (await import("../forward.ts")).runForwarding(runtime),
  check: async (runtime) => (await import("../cli/doctor/forward.ts")).checkForwarding(runtime),
  questions: { ...dispatchQuestions, destinationOf: destinationNamed },
};
