import type { Part } from "../../app/part.ts";

/** Shows people what is stored: events, objects, deliveries, dunning, chargebacks. */
export const browse: Part = {
  name: "browse",
  commands: [
    {
      lists: { events: "the inbox: every webhook that arrived" },
      load: async () => (await import("./events/command.ts")).registerEvents,
    },
  ],
  async pages(runtime) {
    const { eventPagesOf } = await import("./events/pages/pages-of.ts");
    const { objectPagesOf } = await import("./objects/object-routes.ts");
    const { deliveryPagesOf } = await import("./deliveries/pages-of.ts");
    const { dunningPagesOf } = await import("./dunning/pages-of.ts");
    const { chargebackPagesOf } = await import("./chargebacks/pages-of.ts");
    return [
      eventPagesOf(runtime),
      objectPagesOf(runtime.ask),
      deliveryPagesOf(runtime),
      dunningPagesOf(runtime),
      chargebackPagesOf(runtime),
    ];
  },
};
