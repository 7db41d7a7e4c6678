/**
 * The shapes of the service's secrets: API keys and signing secrets. The group is the prefix, which is not secret and
 * may be shown.
 */
export const secretShapes: readonly RegExp[] = [/(svc_(?:live|test)_sk_)[\w-]+/g, /(whsec_)[\w+/=%-]+/g];
