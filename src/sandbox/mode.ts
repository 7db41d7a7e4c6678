/** The environment of a key: `svc_test_sk_` keys are test, `svc_live_sk_` keys live. Neither sees the other's objects. */
export type Mode = "test" | "live";

export const modes: readonly Mode[] = ["test", "live"];
