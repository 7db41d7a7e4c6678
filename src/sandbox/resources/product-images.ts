import * as routes from "../../service/routes/product-images.ts";
import { plainAnswer } from "../answer.ts";
import type { Mounted } from "../http/mount.ts";
import { mounted } from "../http/mount.ts";
import { addImage, deleteImage, imagesOf, reorderImages } from "../operations/product-images.ts";
import { productImageBody } from "../wire/product-image.ts";
import { find } from "./find.ts";

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
