/**
 * Waits for Ctrl-C or a request to end. A second one ends the process at once: whoever asks twice does not want
 * to wait, and nothing acknowledged is lost by it.
 */
export function untilSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let isFirst = true;
    const onSignal = (signal: NodeJS.Signals) => {
      if (!isFirst) process.exit(130);
      isFirst = false;
      resolve(signal);
    };
    process.on("SIGINT", onSignal);
    process.on("SIGTERM", onSignal);
  });
}
