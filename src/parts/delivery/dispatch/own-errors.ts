import { tallyhook } from "../../../platform/command-line.ts";

/** Our own errors, not the merchant's: the meaning and remedy of each. */
export const handlerErrors: Readonly<Record<string, string>> = {
  ObjectNotSeen:
    "the mirror has not seen the object yet. Tallyhook reads it from the service, usually within seconds. If it " +
    `does not appear: "${tallyhook("doctor")}" says whether the service answers, "${tallyhook("reconcile")}" reads ` +
    "what is missing; then retry. An object that the service has deleted never appears: skip the change",
  DeadlineExceeded:
    "the attempt took longer than deadlineMs. What it waits for does not answer, or it needs a longer deadline",
  RetryLater:
    "the handler asked for another time, either with what is no number of milliseconds, or more than 1,000 times for " +
    "this change. Give RetryLater the answer itself, which may lack a Retry-After, and end what can never be done",
  ProcessEndedWhileItRan:
    "the process ended each time that it ran: killed, out of memory, or process.exit. The log before its restarts " +
    "says why",
};

/** The same for destinations, whose answers are reported differently. */
export const deliveryErrors: Readonly<Record<string, string>> = {
  ProcessEndedWhileItRan:
    "the worker ended each time that it sent this: killed, or out of memory. Its log before the restarts says why",
};
