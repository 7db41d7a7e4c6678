const lookEveryMs = 500;

/**
 * npm (`npx tallyhook`, `npm start`) ends at SIGTERM and tells nobody, so that whatever it started would go on alone. A
 * program that npm started ends in good order once its parent is gone. Started in any other way it may well outlive
 * its parent, as a service does.
 */
export function endWithNpm(
  environment: Readonly<Record<string, string | undefined>>,
  stderr: NodeJS.WritableStream,
): void {
  if (environment["npm_execpath"] === undefined) return;
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    stderr.write("tallyhook: npm, which started this program, has ended. Stopping.\n");
    process.kill(process.pid, "SIGTERM");
  }, lookEveryMs);
  timer.unref();
}
