import Table from "cli-table3";
import { visible } from "../../platform/visible-text.ts";
import { inspectEndpoint } from "../../reconcile/endpoint/watch-endpoint.ts";
import { listKnownEndpoints } from "../../reconcile/endpoint/known-endpoints.ts";
import { listEndpoints } from "../../reconcile/endpoint/list-endpoints.ts";
import type { CliContext } from "../context.ts";
import { withEndpointTools } from "./at-hand.ts";

export interface ListOptions {
  json?: boolean;
}

export async function listOwnEndpoints(context: CliContext, { json }: ListOptions): Promise<void> {
  const { endpoints, known, report } = await withEndpointTools(context, async (tools) => ({
    endpoints: (await listEndpoints(tools)).endpoints,
    known: await listKnownEndpoints(tools.db),
    report: await inspectEndpoint(tools, tools.url),
  }));
  const secretOf = new Map(known.map(({ id, secretId }) => [id, secretId]));
  const own = new Set(report?.endpoints.map(({ id }) => id));
  const rows = endpoints.map((endpoint) => ({
    id: endpoint.id,
    url: endpoint.url,
    status: endpoint.status,
    enabled_events: endpoint.enabled_events,
    api_version: endpoint.api_version ?? null,
    api_version_sunset: endpoint.api_version_sunset ?? null,
    rotation_ends_at: endpoint.rotation_expires_at ?? null,
    own: own.has(endpoint.id) || secretOf.has(endpoint.id),
    secret: secretOf.get(endpoint.id) ?? null,
  }));
  const problems = report?.problems ?? [];
  if (json === true) {
    context.stdout.write(`${JSON.stringify({ endpoints: rows, problems })}\n`);
    return;
  }
  const table = new Table({
    head: ["id", "url", "status", "events", "version", "rotation until", "secret here"],
    style: { head: [], border: [] },
  });
  for (const row of rows) {
    const secret = row.secret ?? (row.own ? "unknown" : "-");
    const cells = [row.id, row.url, row.status, row.enabled_events.join(", ")];
    const rest = [row.api_version ?? "-", row.rotation_ends_at ?? "-", secret];
    table.push([...cells, ...rest].map(visible));
  }
  context.stdout.write(
    rows.length === 0 ? "The account has no endpoint.\n" : `${table.toString()}\n`,
  );
  for (const { severity, says, remedy } of problems) {
    context.stdout.write(`${severity}: ${visible(says)}\n  → ${remedy}\n`);
  }
}
