import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { loadAlertSettings } from "../../src/parts/alerts/settings.ts";
import { adminPorts } from "../../src/app/metrics/serve-metrics.ts";
import { projectRoot } from "../support/project-root.ts";
import { prometheusAvailable, promtool } from "../support/prometheus.ts";
import { entries, knownMetrics, unknownNames } from "./known-metrics.ts";
import { readAlertRules, readYaml, ruleTestsFile, rulesFile } from "./monitoring-files.ts";
import { readPromql } from "./promql.ts";

interface RuleTests {
  rule_files: string[];
  tests: {
    name: string;
    promql_expr_test?: { expr: string; exp_samples: { labels: string }[] }[];
    alert_rule_test?: unknown[];
  }[];
}

const rules = readAlertRules();
const names = [...new Set(rules.map(({ alert }) => alert))];
const ruleTests = readYaml<RuleTests>(ruleTestsFile);
const casesOf = (alert: string) => ({
  firing: ruleTests.tests.filter(({ name }) => name.startsWith(`${alert} fires: `)),
  quiet: ruleTests.tests.filter(({ name }) => name.startsWith(`${alert} is quiet: `)),
});

describe.skipIf(!prometheusAvailable)("promtool", () => {
  let folder = "";
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "tallyhook-rules-"));
    cpSync(join(projectRoot, "deploy/prometheus"), folder, { recursive: true });
    writeFileSync(join(folder, "metrics_token"), "0123456789abcdef");
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test("takes the example's configuration, and the rules that it names", () => {
    const { isContent, output } = promtool("check", "config", join(folder, "prometheus.yml"));
    expect(output).toContain(`SUCCESS: ${rules.length} rules found`);
    expect(isContent).toBe(true);
  });

  test("takes the configuration of the compose file, whose token is in its container alone", () => {
    const file = join(folder, "prometheus.compose.yml");
    expect(promtool("check", "config", "--syntax-only", file)).toMatchObject({ isContent: true });
  });

  test("finds that each alert fires and is quiet when it should be", () => {
    expect(promtool("test", "rules", ruleTestsFile)).toMatchObject({ isContent: true });
  });

  test("would find out another threshold", () => {
    writeFileSync(
      join(folder, "spoilt.rules.yml"),
      readFileSync(rulesFile, "utf8").replace(
        "tallyhook_inbox_oldest_unapplied_age_seconds) > 300",
        "tallyhook_inbox_oldest_unapplied_age_seconds) > 900",
      ),
    );
    const { firing, quiet } = casesOf("TallyhookNotApplied");
    const tests = { ...ruleTests, rule_files: ["spoilt.rules.yml"], tests: [...firing, ...quiet] };
    writeFileSync(join(folder, "spoilt.test.yml"), stringify(tests));
    const { isContent, output } = promtool("test", "rules", join(folder, "spoilt.test.yml"));
    expect(isContent).toBe(false);
    expect(output).toMatch(/exp: \{severity="critical"\}[^]*got: nil/);
  });
});

test.each(names)("%s has a case in which it fires, and one in which it is quiet", (alert) => {
  const { firing, quiet } = casesOf(alert);
  const expected = (cases: RuleTests["tests"]) =>
    cases.map(({ promql_expr_test: checks = [] }) =>
      checks.map(({ expr, exp_samples: samples }) => {
        expect(expr).toContain(`ALERTS{alertname="${alert}", alertstate="firing"}`);
        return samples.length;
      }),
    );
  expect(firing.length).toBeGreaterThan(0);
  expect(quiet.length).toBeGreaterThan(0);
  for (const counts of expected(firing)) expect(counts.at(-1)).toBeGreaterThan(0);
  for (const counts of expected(quiet)) expect(counts.filter((count) => count > 0)).toEqual([]);
});

describe.each(rules)("$alert ($labels.severity): $annotations.summary", (rule) => {
  test("says what it means and what to do first, and where to read on", () => {
    expect(rule.for).toMatch(/^\d+[mh]$/);
    expect(rule.labels["severity"]).toMatch(/^(critical|warning|info)$/);
    expect(Object.keys(rule.annotations)).toEqual(["summary", "description", "runbook_url"]);
    expect(rule.annotations["summary"]?.length).toBeLessThan(110);
    expect(rule.annotations["description"]).toMatch(/^[A-Z{][^]{80,320}[.]$/);
    expect(rule.annotations["runbook_url"]).toBe(
      `https://github.com/example/tallyhook/blob/main/docs/runbooks.md#${rule.alert.toLowerCase()}`,
    );
  });

  test("names metrics, labels and values that the program has", async () => {
    expect(unknownNames(await knownMetrics(), readPromql(rule.expr))).toEqual([]);
  });

  test("takes no sum over the workers, which all have the same of the database", () => {
    const ofDatabase = entries
      .filter(({ servedBy, type }) => servedBy.join() === "worker" && type === "gauge")
      .map(({ name }) => name);
    const selected = readPromql(rule.expr).selectors.map(({ metric }) => metric);
    if (!selected.some((metric) => ofDatabase.includes(metric))) return;
    expect(rule.expr).not.toMatch(/\b(?:sum|avg|count)\b/);
  });

  test("has in its texts no label that the alert does not carry", () => {
    const carried = casesOf(rule.alert).firing.flatMap(({ promql_expr_test: checks = [] }) =>
      checks.flatMap(({ exp_samples: samples }) => samples.map(({ labels }) => labels)),
    );
    const texts = Object.values(rule.annotations).join("\n");
    for (const [, label = ""] of texts.matchAll(/\$labels\.(\w+)/g)) {
      expect(
        carried.some((labels) => labels.includes(`${label}="`)),
        label,
      ).toBe(true);
    }
  });

  test("names a rule of Tallyhook, if any, that tells the same", () => {
    const { own_rule: own } = rule.labels;
    if (own !== undefined) expect(loadAlertSettings(null).rules).toHaveProperty(own);
  });
});

test("the catalogue says of each metric which alerts use it", () => {
  const used = new Map(entries.map(({ name }) => [name, new Set<string>()]));
  for (const { alert, expr } of rules) {
    for (const { metric } of readPromql(expr).selectors) {
      used.get(metric.replace(/_bucket$/, ""))?.add(alert);
    }
  }
  for (const { name, alerts } of entries) {
    expect([...(used.get(name) ?? [])].toSorted(), name).toEqual([...alerts].toSorted());
  }
});

test("the rule of wrong signatures counts what Tallyhook's own rule counts", () => {
  const { count, withinMinutes } = loadAlertSettings(null).rules.signature_failures;
  const { expr = "" } = rules.find(({ alert }) => alert === "TallyhookSignatureFailures") ?? {};
  expect(readPromql(expr).limits).toEqual([{ operator: ">", value: count }]);
  expect(expr).toContain(`[${withinMinutes}m]`);
});

describe("the configurations of Prometheus", () => {
  interface Job {
    job_name: string;
    static_configs?: { targets: string[]; labels: { process: string } }[];
    dns_sd_configs?: unknown;
    relabel_configs?: unknown;
    authorization: { credentials_file: string };
  }
  const read = (name: string) =>
    readYaml<{ scrape_configs: Job[]; rule_files: string[] }>(join(projectRoot, "deploy/prometheus", name));

  test("name each process where it serves its metrics by default", () => {
    const found = read("prometheus.yml").scrape_configs[0]?.static_configs ?? [];
    expect(Object.fromEntries(found.map(({ targets, labels }) => [labels.process, targets]))).toEqual(
      Object.fromEntries(
        (["receiver", "worker", "dashboard", "handlers"] as const).map((name) => [
          name,
          [`127.0.0.1:${adminPorts[name]}`],
        ]),
      ),
    );
  });

  test("differ in how processes are found and where the token is, and in nothing else", () => {
    const common = (name: string) => {
      const { scrape_configs: jobs, ...others } = read(name);
      const same = jobs.map((job) => {
        const { static_configs: _, dns_sd_configs: __, relabel_configs: ___, ...rest } = job;
        return { ...rest, authorization: Object.keys(job.authorization) };
      });
      return { ...others, jobs: same };
    };
    expect(common("prometheus.compose.yml")).toEqual(common("prometheus.yml"));
  });
});
