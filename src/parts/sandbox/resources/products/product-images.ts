import Router from "@koa/router";
import type { Context } from "koa";
import * as routes from "../../../../core/contract/resources/products.ts";
import { maxImageBytes, maxImages } from "../../../../core/contract/resources/products.ts";
import { plainAnswer } from "../../engine/answer.ts";
import { ApiError, invalidValue, notFound } from "../../engine/api-error.ts";
import { modes } from "../../engine/keys.ts";
import type { Space } from "../../engine/space.ts";
import type { State } from "../../engine/state.ts";
import { type Mounted, mounted } from "../../http/mount.ts";
import { find } from "../find.ts";
import { type ProductImageRecord, type ProductRecord, productImageBody } from "./product.ts";

const add = mounted(routes.addProductImage, (space, { params, body }, state) => {
  const product = find(state, space, "products", params.id);
  const image = addImage(space, product, body.image);
  return plainAnswer(201, productImageBody(image, imagesOf(space, product.id).length - 1));
});

const remove = mounted(routes.deleteProductImage, (space, { params }, state) => {
  const product = find(state, space, "products", params.id);
  deleteImage(space, product, params.imageId);
  return plainAnswer(200, { id: params.imageId, deleted: true, message: "The image was deleted." });
});

const reorder = mounted(routes.reorderProductImages, (space, { params, body }, state) => {
  const product = find(state, space, "products", params.id);
  const images = reorderImages(space, product, body.image_ids);
  return plainAnswer(200, { data: images.map(productImageBody) });
});

export const productImageEndpoints: readonly Mounted[] = [add, remove, reorder];

/** A product's images in display order. */
export function imagesOf(space: Pick<Space, "images">, productId: string): readonly ProductImageRecord[] {
  return space.images.get(productId) ?? [];
}

/** Appends an image. Its content determines the format, not a name or a header. */
function addImage(space: Space, product: ProductRecord, bytes: Buffer): ProductImageRecord {
  const others = imagesOf(space, product.id);
  if (bytes.length > maxImageBytes) {
    throw invalidValue("image", `must be at most ${maxImageBytes} bytes`);
  }
  const format = imageFormat(bytes);
  if (format === null) {
    throw new ApiError("invalid_format", "The image must be a JPEG, PNG or GIF.", "image");
  }
  if (others.length >= maxImages) {
    throw invalidValue("image", `a product has at most ${maxImages} images`);
  }
  const id = space.ids.uuid();
  const image: ProductImageRecord = {
    id,
    product_id: product.id,
    url: space.assetUrl(`/cdn/images/${id}.${format.extension}`),
    created_at: space.time.iso(),
    type: format.type,
    bytes,
  };
  space.images.set(product.id, [...others, image]);
  return image;
}

/** Removes an image and closes the gap in the order. */
function deleteImage(space: Space, product: ProductRecord, imageId: string): void {
  const images = imagesOf(space, product.id);
  if (!images.some(({ id }) => id === imageId)) throw notFound("image");
  space.images.set(
    product.id,
    images.filter(({ id }) => id !== imageId),
  );
}

/** Puts the images in the order of `ids`, which must name each of them once. */
function reorderImages(space: Space, product: ProductRecord, ids: readonly string[]): readonly ProductImageRecord[] {
  const images = imagesOf(space, product.id);
  const ordered = ids.map((id) => {
    const image = images.find((known) => known.id === id);
    if (image === undefined) throw notFound("image", "image_ids");
    return image;
  });
  if (new Set(ids).size !== ids.length || ids.length !== images.length) {
    throw invalidValue("image_ids", "must name every image of the product once");
  }
  space.images.set(product.id, ordered);
  return ordered;
}

const signatures: readonly (readonly [type: string, extension: string, leading: readonly string[]])[] = [
  ["image/jpeg", "jpg", ["\xff\xd8\xff"]],
  ["image/png", "png", ["\x89PNG\r\n\x1a\n"]],
  ["image/gif", "gif", ["GIF87a", "GIF89a"]],
];

/** The format of an image, by its first bytes; null for any but JPEG, PNG and GIF. */
function imageFormat(bytes: Buffer): { type: string; extension: string } | null {
  const head = bytes.toString("latin1", 0, 8);
  for (const [type, extension, leading] of signatures) {
    if (leading.some((text) => head.startsWith(text))) return { type, extension };
  }
  return null;
}

/** Serves product images at their `url`, without a key, as a CDN does. */
export function createCdnRouter(state: () => State): Router {
  const router = new Router({ prefix: "/cdn" });
  router.get("/images/:file", (ctx: Context) => {
    const { file = "" } = ctx["params"] as Record<string, string>;
    const image = imageNamed(state(), file.replace(/\.[a-z]+$/, ""));
    if (image === undefined) throw notFound("image");
    ctx.type = image.type;
    ctx.set("X-Content-Type-Options", "nosniff");
    ctx.body = image.bytes;
  });
  return router;
}

function imageNamed(state: State, id: string): ProductImageRecord | undefined {
  for (const { spaces } of state.merchants.values()) {
    for (const mode of modes) {
      for (const images of spaces[mode].images.values()) {
        const image = images.find((known) => known.id === id);
        if (image !== undefined) return image;
      }
    }
  }
  return undefined;
}
