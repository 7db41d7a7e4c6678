import type { Server } from "node:http";

/** Listens on the port given on the command line, until SIGTERM. */
export function serve(server: Server): void {
  server.listen(Number(process.argv[2]), "127.0.0.1");
  process.on("SIGTERM", () => {
    server.close();
    server.closeAllConnections();
  });
}
