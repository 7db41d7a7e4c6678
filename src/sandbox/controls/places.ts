import { z } from "zod";

import { firstMerchant } from "../keys.ts";
import { notFound } from "../refusal.ts";
import type { Space } from "../space.ts";
import type { Merchant, State } from "../state.ts";
import { mode } from "./fields.ts";

/** Where a control acts: the first merchant's test environment, unless it says otherwise. */
export const place = { merchant: z.string().max(100).default(firstMerchant), mode };

export function merchantNamed(state: Pick<State, "merchants">, id: string): Merchant {
  const merchant = state.merchants.get(id);
  if (merchant === undefined) throw notFound("merchant", "merchant");
  return merchant;
}

export function spaceAt(
  state: Pick<State, "merchants">,
  { merchant, mode: environment }: { merchant: string; mode: "test" | "live" },
): Space {
  return merchantNamed(state, merchant).spaces[environment];
}
