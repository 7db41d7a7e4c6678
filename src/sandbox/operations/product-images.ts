import { maxImageBytes, maxImages } from "../../service/routes/product-images.ts";
import type { ProductImageRecord, ProductRecord } from "../records/product.ts";
import { invalidValue, notFound, Refusal } from "../refusal.ts";
import { imageFormat } from "../rules/image-format.ts";
import type { Space } from "../space.ts";

/** A product's images in display order. */
export function imagesOf(
  space: Pick<Space, "images">,
  productId: string,
): readonly ProductImageRecord[] {
  return space.images.get(productId) ?? [];
}

/** Appends an image. Its format is told by its content, not by a name or a header (statement 258). */
export function addImage(space: Space, product: ProductRecord, bytes: Buffer): ProductImageRecord {
  const others = imagesOf(space, product.id);
  if (bytes.length > maxImageBytes) {
    throw invalidValue("image", `must be at most ${maxImageBytes} bytes`);
  }
  const format = imageFormat(bytes);
  if (format === null) {
    throw new Refusal("invalid_format", "The image must be a JPEG, PNG or GIF.", "image");
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

/** Removes an image; the order of the rest stays without gaps (statement 264). */
export function deleteImage(space: Space, product: ProductRecord, imageId: string): void {
  const images = imagesOf(space, product.id);
  if (!images.some(({ id }) => id === imageId)) throw notFound("image");
  space.images.set(
    product.id,
    images.filter(({ id }) => id !== imageId),
  );
}

/** Puts the images in the order of `ids`, which must name each of them once (statement 267). */
export function reorderImages(
  space: Space,
  product: ProductRecord,
  ids: readonly string[],
): readonly ProductImageRecord[] {
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
