import { expect, it } from "vitest";
import { signatureScheme } from "../../../src/core/contract/signature/signature-scheme.ts";
import { secretProblem } from "../../../src/core/contract/signature/verification.ts";

it.each([
  ["svc", "", "is empty"],
  ["svc", "fifteen-bytes!!", "has 15 bytes; at least 16 are needed"],
  ["hex", "sixteen-bytes-ok\n", "contains white space"],
  ["svc", "two secrets-on-a-line", "contains white space"],
  ["standard-webhooks", "whsec_c2hvcnQ=", "has 5 bytes; at least 16 are needed"],
  ["standard-webhooks", "whsec_not/base64!!!!!!!!", "is not base64 after whsec_"],
  ["standard-webhooks", "whsec_", "is not base64 after whsec_"],
  ["standard-webhooks", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaL", "is not base64 after whsec_"],
  ["standard-webhooks", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS=w", "is not base64 after whsec_"],
  ["standard-webhooks", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw=", "is not base64 after whsec_"],
  ["svc", "v1,whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 'begins with "v1,"'],
  ["standard-webhooks", "v1,whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 'begins with "v1,"'],
  ["svc", '"sixteen-bytes-ok"', "is in quotation marks"],
  ["hex", "'sixteen-bytes-ok'", "is in quotation marks"],
] as const)("%s refuses %j: %s", (scheme, value, problem) => {
  expect(secretProblem(signatureScheme(scheme), value)).toContain(problem);
});

it.each([
  ["svc", "sixteen-bytes-ok"],
  ["svc", "äöüäöüäö"],
  ["hex", "whsec_c2hvcnQ=xxxxx"],
  ["standard-webhooks", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
  ["standard-webhooks", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLQ=="],
  ["standard-webhooks", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLQ"],
] as const)("%s takes %j", (scheme, value) => {
  expect(secretProblem(signatureScheme(scheme), value)).toBeNull();
});
