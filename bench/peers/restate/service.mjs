// The handlers of the bench for Restate: node service.mjs PORT. A task is a step whose result is kept (ctx.run).
import * as restate from "@restatedev/restate-sdk";

const tick = (ctx) => ctx.run("tick", () => {});

const bench = restate.service({
  name: "bench",
  handlers: {
    oneTask: async (ctx) => {
      await tick(ctx);
    },
    chainOf40: async (ctx) => {
      for (let number = 0; number < 40; number += 1) {
        await tick(ctx);
      }
    },
    // One task, then 400 at once, then one.
    fanOutOf400: async (ctx) => {
      await tick(ctx);
      await restate.RestatePromise.all(Array.from({ length: 400 }, () => tick(ctx)));
      await tick(ctx);
    },
  },
});

restate.serve({ services: [bench], port: Number(process.argv[2]) });
