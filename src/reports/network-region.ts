/**
 * Where the acquirer is, as far as a card network's thresholds depend on it: in Latin America and the Caribbean, in the
 * Middle East and North Africa, or anywhere else.
 */
export type NetworkRegion = "global" | "lac" | "mena";
