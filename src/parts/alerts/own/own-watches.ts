/**
 * Your own alert conditions, a file each: `own/<name>.ts` (docs/extend.md). Their rules begin with `own_`. New versions
 * of Tallyhook never change this folder.
 */
export const ownWatches = [] as const;
