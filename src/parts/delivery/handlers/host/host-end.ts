/** The end of a host, as observed from outside. */
export interface HostEnd {
  code: number | null;
  signal: NodeJS.Signals | null;
  /** The reason why its supervisor killed it, or why it ended itself; null for neither. */
  known: string | null;
  /** Share of the heap's limit at its last sign of life. */
  heapShare: number;
  /** The file that was being loaded. */
  loading: string | null;
}

/** Beyond this an abort is that of V8, which has found no room for a further object. (The limit counts young ones twice.) */
const nearlyFull = 0.6;

/** The reason for a host's end, in an operator's words. */
export function hostEndText({ loading, ...end }: HostEnd): string {
  const what = causeText(end);
  return loading === null ? what : `${what}, while it loaded ${loading}`;
}

function causeText({ code, signal, known, heapShare }: Omit<HostEnd, "loading">): string {
  if (known !== null) return known;
  if (code !== null) return `it exited with code ${code}, as by process.exit() in a handler`;
  if (signal === "SIGABRT" || signal === "SIGTRAP" || signal === "SIGILL") {
    return heapShare > nearlyFull
      ? "it ran out of memory: its heap was full"
      : `it aborted (${signal}): it suddenly ran out of memory, or a handler called process.abort()`;
  }
  return signal === "SIGKILL"
    ? "it was killed (SIGKILL), by a person or because the machine or container has no memory left"
    : `it was ended by ${signal}`;
}
