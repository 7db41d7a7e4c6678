import type Router from "@koa/router";

import {
  acceptChargeback,
  dismissChargeback,
  openChargeback,
  voidOrder,
} from "../operations/chargebacks.ts";
import { modes } from "../mode.ts";
import type { OrderRecord } from "../records/order.ts";
import { notFound } from "../refusal.ts";
import type { Space } from "../space.ts";
import type { State } from "../state.ts";
import { orderBody } from "../wire/order.ts";
import type { ControlDeps } from "./control.ts";
import { addControl } from "./control.ts";
import { nothing } from "./fields.ts";

const orderMoves = {
  chargeback: openChargeback,
  chargeback_accept: acceptChargeback,
  chargeback_dismiss: dismissChargeback,
  void: voidOrder,
} as const;

/** `POST /_sandbox/orders/{id}/chargeback` and its like: transitions that no call of the service causes. */
export function addOrderControls(router: Router, { state }: ControlDeps): void {
  for (const [name, move] of Object.entries(orderMoves)) {
    addControl(router, {
      method: "POST",
      path: `/orders/:id/${name}`,
      query: nothing,
      body: nothing,
      run({ params }) {
        const { space, order } = orderAnywhere(state(), params["id"] ?? "");
        return state().time.atOneMoment(() => orderBody(move(space, order)));
      },
    });
  }
}

function orderAnywhere(state: State, id: string): { space: Space; order: OrderRecord } {
  for (const { spaces } of state.merchants.values()) {
    for (const mode of modes) {
      const order = spaces[mode].orders.get(id);
      if (order !== undefined) return { space: spaces[mode], order };
    }
  }
  throw notFound("order");
}
