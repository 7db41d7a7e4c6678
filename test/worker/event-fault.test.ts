import { expect, test } from "vitest";
import { UnreachableError } from "../../src/platform/errors.ts";
import { safeReason } from "../../src/platform/log.ts";
import { isEventFault } from "../../src/core/worker/apply-batch.ts";

const coded = (code: string, fields: object = { severity: "ERROR" }): Error =>
  Object.assign(new Error('Key (email)=(jane@example.com) is "bad"'), { code, ...fields });

test.each(["22P02", "23505", "23514", "25P04", "42804", "54000", "57014", "P0001", "XX000"])(
  "%s may be the event's fault: it is counted",
  (code) => {
    expect(isEventFault(coded(code))).toBe(true);
  },
);

test.each([
  "08006",
  "25006",
  "25P03",
  "26000",
  "28P01",
  "34000",
  "3D000",
  "40P01",
  "40001",
  "42501",
  "42P05",
  "53100",
  "53300",
  "55P03",
  "57P01",
  "57P03",
  "58030",
  "0A000",
  "XX001",
])("%s is not the event's fault", (code) => {
  expect(isEventFault(coded(code))).toBe(false);
});

test.each(["08P01", "57P01", "XX000"])(
  "%s that ends the connection is not the event's fault, whoever says it",
  (code) => {
    expect(isEventFault(coded(code, { severity: "FATAL" }))).toBe(false);
  },
);

test("the time limit of a transaction is counted, though it ends the connection", () => {
  expect(isEventFault(coded("25P04", { severity: "FATAL" }))).toBe(true);
});

test.each(["ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EPIPE"])(
  "%s is a lost connection, though some of these look like a code of the server",
  (code) => {
    expect(isEventFault(coded(code, {}))).toBe(false);
  },
);

test("a mistake of our own is counted, a connection that ended is not", () => {
  expect(isEventFault(new TypeError("undefined is no function"))).toBe(true);
  expect(isEventFault(new RangeError("Maximum call stack size exceeded"))).toBe(true);
  expect(isEventFault(new Error("Connection terminated unexpectedly"))).toBe(false);
  expect(isEventFault(new UnreachableError("away"))).toBe(false);
  expect(isEventFault(undefined)).toBe(false);
  expect(isEventFault("text")).toBe(false);
});

test("nothing that the database quotes is stored", () => {
  const error = coded("23505", {
    severity: "ERROR",
    detail: "Key (email)=(jane@example.com) already exists.",
    table: "customers",
    constraint: "customers_pkey",
  });
  expect(safeReason(error)).toBe("database error 23505");
  expect(safeReason(new TypeError("jane"))).toBe("TypeError");
});
