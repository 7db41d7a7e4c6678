import { type DatabaseRights, words } from "../../app/rights.ts";

export const endpointRights: DatabaseRights = {
  tables: {
    "reconcile.endpoints": { backup: "keep", worker: "r", dashboard: "arw" },
    "reconcile.endpoint_calls": {
      backup: "keep",
      worker: "r",
      dashboard: { all: "ra", update: words("settled_at outcome endpoint_id") },
    },
  },
};
