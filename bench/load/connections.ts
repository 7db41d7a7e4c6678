import { type HttpConnection, openConnection } from "./http-connection.ts";

export interface Connections {
  readonly free: HttpConnection[];
  /** Rejects when a connection is lost: the run would measure something else. */
  readonly lost: Promise<never>;
  close(): void;
}

export async function openConnections(port: number, count: number): Promise<Connections> {
  let onLost: (error: Error) => void = () => {};
  const lost = new Promise<never>((_, reject) => {
    onLost = reject;
  });
  lost.catch(() => {});
  const all = await Promise.all(
    Array.from({ length: count }, () => openConnection(port, (error) => onLost(error))),
  );
  return {
    free: [...all],
    lost,
    close: () => {
      for (const connection of all) connection.close();
    },
  };
}
