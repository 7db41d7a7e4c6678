/** An answer that is none: the connection is cut, or a page of a proxy stands where JSON should. Thrown by API faults. */
export class SpoiledAnswer extends Error {
  readonly kind: "cut" | "html";

  constructor(kind: "cut" | "html") {
    super(`an answer spoiled by a fault: ${kind}`);
    this.name = "SpoiledAnswer";
    this.kind = kind;
  }
}

export const proxyPage =
  "<!doctype html><html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n";
