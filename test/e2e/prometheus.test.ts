import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { migrateQueueSchema } from "../../src/core/queue/backend.ts";
import { event } from "../alerts/sweep-stand.ts";
import { readAlertRules, readDashboard, rulesFile, withoutVariables } from "../deployment/monitoring-files.ts";
import { sampleOrder } from "../mirror/samples.ts";
import { signatureOf } from "../receiver/receiver-stand.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { projectRoot } from "../support/project-root.ts";
import { type PrometheusServer, prometheusAvailable, startPrometheus } from "../support/prometheus.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { type Deployment, layOutDeployment, webhookSecret } from "./deployment.ts";
import { type Program, killPrograms } from "./program.ts";

const token = "token-of-the-metrics-0123456789";

interface Target {
  health: string;
  lastError: string;
  labels: Record<string, string>;
}
interface Alert {
  state: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
}
interface Series {
  metric: Record<string, string>;
  value: [number, string];
}

describe.skipIf(!prometheusAvailable)("a Prometheus with the example's configuration", () => {
  const database = useTestDatabase();
  let deployment: Deployment;
  let worker: Program;
  let prometheus: PrometheusServer;

  beforeAll(async () => {
    await migrateQueueSchema(database.url);
    deployment = await layOutDeployment({ databaseUrl: database.url });
    const ports = { receiver: await freePort(), worker: await freePort() };
    // Read when a process starts.
    const environment = deployment.environment as Record<string, string>;
    environment["METRICS_TOKEN"] = token;
    environment["ADMIN_PORT"] = String(ports.receiver);
    const receiver = deployment.startReceiver();
    environment["ADMIN_PORT"] = String(ports.worker);
    [worker] = await Promise.all([deployment.startWorker(), receiver]);
    prometheus = await startPrometheus({
      "prometheus.yml": exampleFor(ports),
      "tallyhook.rules.yml": readFileSync(rulesFile, "utf8").replace(/ for: \w+/g, " for: 0s"),
      metrics_token: `${token}\n`,
    });
  });
  afterAll(async () => {
    await prometheus?.stop();
    await killPrograms();
  });

  const query = async (expr: string): Promise<Series[]> => {
    const { result } = await prometheus.ask<{ result: Series[] }>("query", { query: expr });
    return result;
  };
  const value = async (expr: string): Promise<number | null> => {
    const [series] = await query(expr);
    return series === undefined ? null : Number(series.value[1]);
  };
  const firing = async (): Promise<Alert[]> => {
    const { alerts } = await prometheus.ask<{ alerts: Alert[] }>("alerts");
    return alerts.filter(({ state }) => state === "firing");
  };

  test("reads both processes, with the token from its file", async () => {
    const targets = await eventually("both targets are read", async () => {
      const { activeTargets } = await prometheus.ask<{ activeTargets: Target[] }>("targets");
      const errors = activeTargets.map(({ lastError }) => lastError).filter(Boolean);
      if (errors.length > 0) throw new Error(errors.join("\n"));
      return activeTargets.filter(({ health }) => health === "up").length === 2 && activeTargets;
    });
    expect(targets.map(({ labels }) => `${labels["job"]} ${labels["process"]}`).toSorted()).toEqual([
      "tallyhook receiver",
      "tallyhook worker",
    ]);
    expect(await query("tallyhook_build_info")).toHaveLength(2);
  });

  test("counts the webhooks that were sent, and what became of them", async () => {
    const bodies = [1, 2, 3].map((n) => JSON.stringify(event("order.failed", sampleOrder({ id: `ord_${n}` }))));
    for (const body of [...bodies, ...bodies.slice(0, 1)]) {
      expect(await send(deployment.webhooksUrl, body, webhookSecret)).toBe(200);
    }
    expect(await send(deployment.webhooksUrl, "{}", "whsec_of_somebody_else")).toBe(401);

    const outcomes = await eventually("all are counted", async () => {
      const found = await query("sum by (outcome, reason) (tallyhook_receiver_requests_total) > 0");
      return found.length === 3 && found;
    });
    expect(outcomes.map(({ metric, value: [, n] }) => `${metric["outcome"]} ${metric["reason"]} ${n}`)).toEqual(
      expect.arrayContaining(["accepted none 3", "duplicate none 1", "rejected no_match 1"]),
    );
    await eventually("three are applied", async () => {
      return (await value("sum(tallyhook_apply_lag_seconds_count)")) === 3;
    });
    expect(await value('sum(http_server_request_duration_seconds_count{http_route="/webhooks"})')).toBe(5);
    expect(await value("max(tallyhook_worker_alive)")).toBe(1);
  });

  test("evaluates every rule without an error, and nothing fires but that no list is proved yet", async () => {
    const groups = await eventually("all rules are evaluated", async () => {
      const { groups: found } = await prometheus.ask<{
        groups: { rules: { name: string; health: string; lastError?: string }[] }[];
      }>("rules");
      return found.every(({ rules }) => rules.every(({ health }) => health !== "unknown")) && found;
    });
    const evaluated = groups.flatMap(({ rules }) => rules);
    expect(evaluated).toHaveLength(readAlertRules().length);
    expect(evaluated.filter(({ health }) => health !== "ok")).toEqual([]);

    const expected = ["customer", "order", "subscription", "transaction"].map((list) => `TallyhookNotProved ${list}`);
    let found: string[] = [];
    // A scrape that took too long, on a busy machine, passes by itself.
    await eventually("these fire, and no other", async () => {
      found = (await firing())
        .map(({ labels }) => `${labels["alertname"]} ${labels["list"] ?? JSON.stringify(labels)}`)
        .toSorted();
      return found.join() === expected.join();
    }).catch((cause: unknown) => {
      throw new Error(`these fire: ${found.join()}\n${worker.output()}`, { cause });
    });
  });

  test("has an answer for every panel, where there is something to show", async () => {
    // No list is proved, nothing differs and is unpaid, no webhook came, and there is neither a reader nor a handler.
    const nothingToShow = [
      "Proved equal to the service until … ago",
      "At risk in open findings",
      "Renewals at risk",
      "Oldest webhook not applied",
      "Proved until … ago",
      "Open findings by class",
      "At risk by currency",
      "Dead changes by handler",
      "Behind, by handler",
      "Handlers that do not run",
      "Behind, by consumer of the feed",
    ];
    let empty: string[] = [];
    // A rate takes two readings.
    await eventually("all others have an answer", async () => {
      empty = [];
      for (const { title, targets = [] } of readDashboard().panels) {
        const answers = await Promise.all(targets.map(({ expr }) => query(withoutVariables(expr))));
        if (answers.some((found) => found.length === 0)) empty.push(title);
      }
      return empty.length === nothingToShow.length;
    }).catch(() => {});
    expect(empty).toEqual(nothingToShow);
  });

  test("says that no worker answers, once the last one has stopped", async () => {
    await worker.stop();
    const alert = await eventually("the alert fires", async () => {
      const found = await firing();
      return found.find(
        ({ labels }) =>
          labels["alertname"] === "TallyhookDown" &&
          labels["severity"] === "critical" &&
          labels["process"] === "worker",
      );
    });
    expect(alert.annotations["summary"]).toBe("No worker answers");
    const critical = (await firing()).filter(({ labels }) => labels["severity"] === "critical");
    expect(critical.map(({ labels }) => labels["process"])).toEqual(["worker"]);
  });
});

/** The example beside the rules, for these two processes, and quicker. */
function exampleFor(ports: Readonly<Record<string, number>>): string {
  const file = join(projectRoot, "deploy/prometheus/prometheus.yml");
  const example = parse(readFileSync(file, "utf8")) as {
    global: object;
    scrape_configs: {
      scrape_timeout: string;
      static_configs: { targets: string[]; labels: { process: string } }[];
    }[];
  };
  return stringify({
    ...example,
    global: { scrape_interval: "2s", evaluation_interval: "500ms" },
    scrape_configs: example.scrape_configs.map((job) => ({
      ...job,
      scrape_timeout: "2s",
      static_configs: job.static_configs.flatMap(({ labels }) => {
        const port = ports[labels.process];
        return port === undefined ? [] : [{ labels, targets: [`127.0.0.1:${port}`] }];
      }),
    })),
  });
}

async function send(url: string, body: string, secret: string): Promise<number> {
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "svc-signature": signatureOf(Buffer.from(body), { secret }),
    },
    body,
  });
  await response.arrayBuffer();
  return response.status;
}
