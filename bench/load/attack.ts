/**
 * Hostile connections: a process with the kind, the port and the number of connections as arguments. It sends "ready"
 * to its parent when all have been opened once. It continues until its parent ends it, and reconnects whenever it is
 * disconnected.
 */
import { type Socket, connect } from "node:net";
import type { Attack } from "./attacks.ts";

const [kind = "", port = "", count = ""] = process.argv.slice(2);

const body = `{"id":"evt_forged","type":"order.created","data":{"object":{}}}`;
const forged = Buffer.from(
  `POST /webhooks HTTP/1.1\r\nHost: a\r\nSVC-Signature: t=${Math.floor(Date.now() / 1000)},v1=${"0".repeat(64)}\r\n` +
    `Content-Length: ${body.length}\r\n\r\n${body}`,
);
const health = Buffer.from("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
const manyHealth = Buffer.concat(Array.from({ length: 500 }, () => health));

/** How often a forger sends, and the delay before a reconnect. */
const everyMs = 1_000;

const attacks: Readonly<Record<Attack, (socket: Socket) => void>> = {
  silent() {},
  forging(socket) {
    socket.write(forged);
    socket.on("data", () => {});
    const timer = setInterval(() => socket.write(forged), everyMs);
    socket.on("close", () => clearInterval(timer));
  },
  unread(socket) {
    socket.pause();
    const more = (): void => void socket.write(manyHealth);
    socket.on("drain", more);
    more();
  },
};

let opened = 0;

function attackAgain(): void {
  const socket = connect({ host: "127.0.0.1", port: Number(port) });
  socket.on("error", () => {});
  socket.once("connect", () => {
    opened += 1;
    if (opened === Number(count)) process.send?.("ready");
    attacks[kind as Attack](socket);
  });
  socket.once("close", () => setTimeout(attackAgain, everyMs * Math.random()));
}

for (let n = 0; n < Number(count); n++) attackAgain();
process.once("disconnect", () => process.exit(0));
