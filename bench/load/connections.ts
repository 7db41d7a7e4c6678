import { type HttpConnection, openConnection } from "./http-connection.ts";

export interface Connections {
  readonly free: HttpConnection[];
  /** Rejects when a connection is lost: the run would measure something else. */
  readonly lost: Promise<never>;
  close(): void;
}

/** Opens connections to one port, or spreads them evenly over several. */
export async function openConnections(port: number | readonly number[], count: number): Promise<Connections> {
  const ports = typeof port === "number" ? [port] : port;
  let onLost: (error: Error) => void = () => {};
  const lost = new Promise<never>((_, reject) => {
    onLost = reject;
  });
  lost.catch(() => {});
  const all = await Promise.all(
    Array.from({ length: count }, (_, n) => openConnection(ports[n % ports.length] ?? 0, (error) => onLost(error))),
  );
  return {
    free: [...all],
    lost,
    close: () => {
      for (const connection of all) connection.close();
    },
  };
}
