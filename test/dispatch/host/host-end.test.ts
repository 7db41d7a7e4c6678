import { expect, test } from "vitest";
import { type HostEnd, hostEndText } from "../../../src/parts/delivery/handlers/host/host-end.ts";

const end: HostEnd = { code: null, signal: null, known: null, heapShare: 0.2, loading: null };

test.each<[Partial<HostEnd>, RegExp]>([
  [{ code: 0 }, /^it exited with code 0, as by process\.exit\(\) in a handler$/],
  [{ code: 1, loading: "a.ts" }, /in a handler, while it loaded a\.ts$/],
  [{ signal: "SIGABRT" }, /^it aborted \(SIGABRT\): it suddenly ran out of memory, or/],
  [{ signal: "SIGABRT", heapShare: 0.9 }, /^it ran out of memory: its heap was full$/],
  [{ signal: "SIGKILL" }, /^it was killed \(SIGKILL\), by a person or because .* no memory left$/],
  [{ signal: "SIGSEGV" }, /^it was ended by SIGSEGV$/],
  [{ signal: "SIGKILL", known: "it hung" }, /^it hung$/],
])("the end of a host is told in an operator's words: %j", (seen, text) => {
  expect(hostEndText({ ...end, ...seen })).toMatch(text);
});
