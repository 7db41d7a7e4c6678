/**
 * What the service's secrets look like: API keys and signing secrets. The group is the beginning that is no secret and
 * may be shown.
 */
export const secretShapes: readonly RegExp[] = [
  /(svc_(?:live|test)_sk_)[\w-]+/g,
  /(whsec_)[\w+/=%-]+/g,
];
