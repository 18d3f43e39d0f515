// Status queries: what the edges answered, as a table and, while one watches, as a plot.

import { html, useEffect, useRef } from "../ui.js";
import { address, Link } from "../router.js";
import { useAnswer } from "../live.js";
import { Empty, Failure, Loading } from "../notices.js";
import { count } from "../format.js";

const SECONDS = 3;
const MAX_POINTS = 600;
const MAX_ROWS = 500;

export function Queries({ query }) {
  const live = useAnswer("queries", { ws: query.get("ws") ?? "" }, SECONDS);
  const { data, error } = live;
  if (error && !data) return html`<h1>Queries</h1><${Failure} status=${error} onRetry=${live.retry} />`;
  if (!data) return html`<h1>Queries</h1><${Loading} what="queries" />`;
  const rows = data.rows ?? [];
  if (!rows.length) return html`<h1>Queries</h1><${Empty} title="No queries yet" command="skerry query deployments --select 'count()' --group-by 'location.labels.region'">A StatusQuery asks the copies at all edges one question and keeps the answer up to date.<//>`;
  return html`<h1>Queries</h1><div class="wide" tabindex="0" role="region" aria-label="Queries"><table><thead><tr><th scope="col">Query</th><th scope="col">Workspace</th><th scope="col" class="number">Rows</th><th scope="col">State</th></tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${row.ws + row.name}><th scope="row"><${Link} to=${address(["queries", row.ws, row.name])}><bdi>${row.name}</bdi><//></th><td><bdi>${row.ws}</bdi></td><td class="number">${count(row.rows)}</td><td><bdi>${row.problem ?? ""}</bdi></td></tr>`)}</tbody></table></div>`;
}

/** Return the numbers of an answer that can be plotted: of each row its first number. */
export function numbersOf(status) {
  const column = (status.columns ?? []).findIndex((_, at) => (status.rows ?? []).some((row) => typeof row.values[at] === "number"));
  if (column < 0) return [];
  return (status.rows ?? []).slice(0, 6).map((row) => ({
    label: row.values.filter((value) => typeof value === "string").join(" ") || status.columns[column].name,
    value: typeof row.values[column] === "number" ? row.values[column] : null,
  }));
}

/** A plot of what was seen since the view was opened; the table beside it says the same in words. */
function Plot({ status }) {
  const box = useRef(null);
  const seen = useRef({ labels: "", times: [], series: [] });
  const plot = useRef(null);
  useEffect(() => {
    const numbers = numbersOf(status);
    if (!numbers.length) return;
    const labels = numbers.map((each) => each.label).join("\n");
    const known = seen.current;
    if (known.labels !== labels) seen.current = { labels, times: [], series: numbers.map(() => []) };
    const { times, series } = seen.current;
    times.push(Date.now() / 1000);
    numbers.forEach((each, index) => series[index].push(each.value));
    if (times.length > MAX_POINTS) [times, ...series].forEach((values) => values.shift());
    draw(box.current, plot, numbers, [times, ...series]);
  }, [status]);
  useEffect(() => () => plot.current?.chart.destroy(), []);
  return html`<div class="plot" ref=${box} aria-hidden="true"></div>`;
}

async function draw(box, plot, numbers, values) {
  const { default: Chart } = await import("../../vendor/uplot.js");
  if (!box.isConnected) return;
  const labels = numbers.map((each) => each.label).join("\n");
  if (plot.current?.labels === labels) {
    plot.current.chart.setData(values);
    return;
  }
  plot.current?.chart.destroy();
  const style = getComputedStyle(box);
  const axis = { stroke: style.getPropertyValue("--quiet"), grid: { stroke: style.getPropertyValue("--line") } };
  const colours = ["--progressing", "--healthy", "--unhealthy", "--degraded", "--away", "--unknown"].map((name) => style.getPropertyValue(name));
  const series = [{}, ...numbers.map((each, index) => ({ label: each.label, stroke: colours[index], width: 2, dash: index ? [8 - index, index + 1] : undefined }))];
  const chart = new Chart({ width: box.clientWidth, height: 220, legend: { show: false }, cursor: { show: false }, axes: [axis, axis], series }, values, box);
  plot.current = { chart, labels };
}

function cellOf(value) {
  if (value === null || value === undefined) return "–";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

export function Query({ rest }) {
  const [ws, name] = rest;
  const live = useAnswer("query", { ws, name }, SECONDS);
  const { data, error } = live;
  if (error && !data) return html`<h1><bdi>${name}</bdi></h1><${Failure} status=${error} onRetry=${live.retry} />`;
  if (!data) return html`<h1><bdi>${name}</bdi></h1><${Loading} what="the query" />`;
  const status = data.query?.status ?? {};
  const columns = status.columns ?? [];
  const rows = status.rows ?? [];
  return html`<h1>Query <bdi>${name}</bdi> <span class="quiet"><bdi>${ws}</bdi></span></h1>
    <${Plot} status=${status} />
    ${!rows.length && html`<p class="quiet">No rows yet.</p>`}
    ${rows.length > 0 && html`<div class="wide" tabindex="0" role="region" aria-label="Rows"><table><thead><tr>${columns.map((column) => html`<th key=${column.name} scope="col"><bdi>${column.name}</bdi>${column.approximate ? " (within 1 %)" : ""}</th>`)}</tr></thead>
      <tbody>${rows.slice(0, MAX_ROWS).map((row, index) => html`<tr key=${index}>${row.values.map((value, at) => html`<td key=${at} class=${typeof value === "number" ? "number" : ""}><bdi>${cellOf(value)}</bdi></td>`)}</tr>`)}</tbody></table></div>`}
    ${(status.rowsOmitted ?? 0) + Math.max(0, rows.length - MAX_ROWS) > 0 && html`<p class="quiet">${count((status.rowsOmitted ?? 0) + Math.max(0, rows.length - MAX_ROWS))} more rows are not shown.</p>`}
    ${status.sources?.stale > 0 && html`<p class="quiet">${count(status.sources.stale)} reports are stale.</p>`}`;
}
