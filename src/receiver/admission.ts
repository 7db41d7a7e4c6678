import type { Server } from "node:http";
import type { Socket } from "node:net";
import { isAnswered, isSpent } from "./connections.ts";

export interface AdmissionOptions {
  /** Connections at a time. */
  max: number;
  /** Of those that have not sent a request yet, from one address. */
  maxSilentPerAddress: number;
  /** The connection that has sent the headers of its request for the longest time, and not all of its body. */
  slowest(): Socket | null;
  /** A connection was closed unanswered to make room, or found none. */
  onRefused(): void;
}

/** Who may hold a connection. */
export interface Admission {
  /** A connection began a request: it is silent no longer. Costs a look-up. */
  noteRequest(socket: Socket): void;
}

/** How often idle connections are closed at the most, when there are too many. */
const closeIdleEveryMs = 100;

/**
 * Caps the connections of a server. Past the cap the least useful one makes room for a new one: the oldest that has
 * sent nothing, else one whose body is not all there, else one that only holds its place (`isSpent`), else all that
 * idle between two requests, else one in the middle of its next request's headers. A connection is safe only while a
 * request that came whole waits for its answer, so whoever opens connections and leaves them keeps out nobody else.
 * Where nobody can make room, the new one is closed.
 *
 * Only silent connections are limited by address: behind a proxy all senders have one, and a proxy connects to send.
 */
export function limitConnections(server: Server, options: AdmissionOptions): Admission {
  const { max, maxSilentPerAddress, slowest, onRefused } = options;
  /** Oldest first. */
  const silent = new Map<Socket, string>();
  const silentByAddress = new Map<string, Set<Socket>>();
  const open = new Set<Socket>();
  let mayCloseIdle = true;

  function forgetSilent(socket: Socket): void {
    const address = silent.get(socket);
    if (address === undefined) return;
    silent.delete(socket);
    const ofAddress = silentByAddress.get(address);
    ofAddress?.delete(socket);
    if (ofAddress?.size === 0) silentByAddress.delete(address);
  }

  function evict(socket: Socket | null | undefined): boolean {
    if (socket === null || socket === undefined) return false;
    onRefused();
    forgetSilent(socket);
    socket.destroy();
    return true;
  }

  /** Whether there were any. To look for them costs a look at every connection. */
  function closeIdle(): boolean {
    if (!mayCloseIdle) return false;
    mayCloseIdle = false;
    setTimeout(() => (mayCloseIdle = true), closeIdleEveryMs).unref();
    server.closeIdleConnections();
    return [...open].some(({ destroyed }) => destroyed);
  }

  /** The oldest of its kind. */
  function firstOpen(isOne: (socket: Socket) => boolean): Socket | null {
    for (const socket of open) if (!socket.destroyed && isOne(socket)) return socket;
    return null;
  }

  const makeRoom = (): boolean =>
    evict(silent.keys().next().value) ||
    evict(slowest()) ||
    evict(firstOpen(isSpent)) ||
    closeIdle() ||
    evict(firstOpen(isAnswered));

  server.on("connection", (socket) => {
    const address = addressGroup(socket.remoteAddress);
    const ofAddress = silentByAddress.get(address);
    if (ofAddress !== undefined && ofAddress.size >= maxSilentPerAddress) {
      evict(ofAddress.values().next().value);
    }
    if (open.size >= max && !makeRoom()) {
      onRefused();
      socket.destroy();
      return;
    }
    open.add(socket);
    silent.set(socket, address);
    silentByAddress.set(address, (silentByAddress.get(address) ?? new Set()).add(socket));
    socket.once("close", () => {
      open.delete(socket);
      forgetSilent(socket);
    });
  });
  return { noteRequest: forgetSilent };
}

/** An IPv6 address counts with its /64, of which one sender has them all. Pure. */
export function addressGroup(address: string | undefined): string {
  if (address === undefined) return "";
  if (!address.includes(":") || address.includes(".")) return address;
  const [head = "", tail] = address.split("::");
  const groups = head === "" ? [] : head.split(":");
  const rest = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = Array.from({ length: 8 - groups.length - rest.length }, () => "0");
  return [...groups, ...zeros, ...rest].slice(0, 4).join(":");
}
