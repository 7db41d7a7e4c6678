import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { projectRoot } from "../support/project-root.ts";

/** An alert of deploy/prometheus/tallyhook.rules.yml. Several may have one name: one thing, seen in several ways. */
export interface AlertRule {
  alert: string;
  expr: string;
  for: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
}

export const rulesFile = join(projectRoot, "deploy/prometheus/tallyhook.rules.yml");
export const ruleTestsFile = join(projectRoot, "deploy/prometheus/tallyhook.test.yml");

export const readYaml = <T>(path: string): T => parse(readFileSync(path, "utf8")) as T;

export function readAlertRules(): AlertRule[] {
  const { groups } = readYaml<{ groups: { rules: AlertRule[] }[] }>(rulesFile);
  return groups.flatMap(({ rules }) => rules);
}

/** A panel of deploy/grafana/tallyhook.json, as far as tests look at it. */
export interface Panel {
  title: string;
  type: string;
  id: number;
  description?: string;
  datasource?: { uid: string };
  gridPos: { x: number; y: number; w: number; h: number };
  links?: { title: string; url: string }[];
  targets?: { expr: string; legendFormat: string; datasource: { uid: string } }[];
  fieldConfig?: {
    defaults: { unit?: string; thresholds?: { steps: { value: number | null }[] } };
  };
}

export interface Dashboard {
  id: number | null;
  uid: string;
  schemaVersion: number;
  panels: Panel[];
  templating: { list: { name: string; type: string }[] };
}

export function readDashboard(): Dashboard {
  const text = readFileSync(join(projectRoot, "deploy/grafana/tallyhook.json"), "utf8");
  return JSON.parse(text) as Dashboard;
}

/** An expression as Grafana sends it. */
export const withoutVariables = (expr: string): string => expr.replaceAll("$__rate_interval", "1m");
