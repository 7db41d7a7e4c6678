import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readAlertRules } from "../deployment/monitoring-files.ts";
import { readPromql } from "../deployment/promql.ts";
import { projectRoot } from "../support/project-root.ts";

const page = readFileSync(join(projectRoot, "docs/monitoring.md"), "utf8");

test("the table has every alert as the rules have it: severity, threshold, time, and Tallyhook's own rule", () => {
  const rows = [...page.matchAll(/^\| (Tallyhook\w+) .*\|$/gm)].map(([row]) => {
    const [alert, severity, when = "", lasting, own = ""] = row
      .slice(1, -1)
      .split("|")
      .map((cell) => cell.trim());
    const limits = [...when.matchAll(/`([^`]+)`/g)].map(([, limit]) => limit);
    return { alert, severity, limits, lasting, own: own.replaceAll("`", "") };
  });
  expect(rows).toEqual(
    readAlertRules().map(({ alert, expr, labels, for: lasting }) => ({
      alert,
      severity: labels["severity"],
      limits: [...new Set(readPromql(expr).limits.map(({ operator, value }) => `${operator} ${value}`))],
      lasting,
      own: labels["own_rule"] ?? "",
    })),
  );
});

test("the page names every file of deploy/prometheus and deploy/grafana by the name it has", () => {
  const named = [...page.matchAll(/`(deploy\/[\w./-]+|docker-compose\.monitoring\.yml)`/g)].map(
    ([, name = ""]) => name,
  );
  expect(new Set(named).size).toBeGreaterThanOrEqual(8);
  for (const name of named) expect(() => statSync(join(projectRoot, name)), name).not.toThrow();
});
