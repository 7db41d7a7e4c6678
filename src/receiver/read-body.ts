import type { IncomingMessage } from "node:http";
import type { ByteRoom } from "./byte-room.ts";

/** What a piece costs beside its bytes: without it a body in pieces of one byte would take a hundredfold. */
const pieceOverheadBytes = 256;

/** `no_room`: what all bodies under way hold together is too much. `incomplete`: the sender broke off. */
export type UnreadBody = "too_large" | "no_room" | "incomplete";

/**
 * Reads a body whole, up to a limit, in room that all bodies share. Of a body that was read, as many bytes as it
 * has stay taken, and are the caller's to give back; of one that was not, none. Then the request flows on, and what
 * still comes is thrown away. Never rejects.
 *
 * Counts what has come, not what was announced: announcing is free, and nobody should fill the room by it.
 */
export function readBody(
  req: IncomingMessage,
  { limit, room }: { limit: number; room: ByteRoom },
): Promise<Buffer | UnreadBody> {
  return new Promise((resolve) => {
    let pieces: Buffer[] = [];
    let length = 0;
    let taken = 0;

    if (req.closed) return resolve("incomplete");

    function onData(piece: Buffer): void {
      length += piece.length;
      if (length > limit) return fail("too_large");
      const cost = piece.length + pieceOverheadBytes;
      if (!room.take(cost)) return fail("no_room");
      taken += cost;
      pieces.push(piece);
    }

    function onEnd(): void {
      detach();
      const [first] = pieces;
      room.give(taken - length);
      resolve(pieces.length === 1 && first !== undefined ? first : Buffer.concat(pieces, length));
    }

    function onBroken(): void {
      fail("incomplete");
    }

    function fail(why: UnreadBody): void {
      detach();
      room.give(taken);
      pieces = [];
      req.resume();
      resolve(why);
    }

    function detach(): void {
      req.removeListener("data", onData);
      req.removeListener("end", onEnd);
      req.removeListener("close", onBroken);
    }

    req.on("data", onData);
    req.on("end", onEnd);
    // Comes after every error, and after "end" only when nobody waits any more.
    req.on("close", onBroken);
  });
}
