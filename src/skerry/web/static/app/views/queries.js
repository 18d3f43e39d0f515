// Status queries: build one, watch what the edges answer as a table and as a plot over time.

import { html, useEffect, useRef, useState } from "../ui.js";
import { styled } from "../sheets.js";
import { address, Link, navigate } from "../router.js";
import { useLive } from "../live.js";
import { Empty, Failure, Loading } from "../notices.js";
import { Conditions } from "../conditions.js";
import { count } from "../format.js";

const MAX_POINTS = 600;
// How often a plot gets a point although nothing changed, while somebody looks.
const POINT_MS = 2000;
const PLOT_HEIGHT = 220;

const KINDS = ["deployments.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch", "pods", "services", "configmaps"];
const FILTERS = [
  ["", "all of them"],
  ['report.healthy != "True"', "those that are not healthy"],
  ["!report.delivered", "those that are not delivered"],
];

/** Return the manifest of a query as the form has it. */
export function queryManifest({ name, kind, filter, label }) {
  const [resource, ...group] = kind.split(".");
  const spec = {
    from: { apiGroup: group.join("."), resources: [resource] },
    ...(filter ? { filter } : {}),
    ...(label ? { groupBy: [{ name: label.replace(/[^A-Za-z0-9]/g, "_"), value: `location.labels[?'${label.replace(/['\\]/g, "")}'].orValue('none')` }] } : {}),
    aggregates: [{ name: "objects", function: "Count" }],
  };
  return JSON.stringify({ apiVersion: "edge.kcp.io/v1alpha1", kind: "StatusQuery", metadata: { name }, spec }, null, 2);
}

/** Builds a query and leads to "what if", where it is previewed and applied like any other edit. */
function Builder({ ws }) {
  const [form, setForm] = useState({ ws, name: "", kind: KINDS[0], filter: "", label: "" });
  const set = (member) => (event) => setForm({ ...form, [member]: event.target.value });
  const submitted = (event) => {
    event.preventDefault();
    navigate(address(["whatif"], { ws: form.ws.trim(), manifest: queryManifest(form) }));
  };
  return html`<section aria-labelledby="build"><h2 id="build">Ask something new</h2><form class="toolbar builder" onSubmit=${submitted}>
    <label>Workspace <input required value=${form.ws} placeholder="root:shop" autocomplete="off" spellcheck=${false} onInput=${set("ws")} /></label>
    <label>Name <input required pattern="[a-z0-9]([a-z0-9\\-]*[a-z0-9])?" maxlength="63" value=${form.name} placeholder="unhealthy-by-region" autocomplete="off" spellcheck=${false} onInput=${set("name")} /></label>
    <label>Count <select value=${form.kind} onChange=${set("kind")}>${KINDS.map((kind) => html`<option key=${kind} value=${kind}>${kind}</option>`)}</select></label>
    <label>Of which <select value=${form.filter} onChange=${set("filter")}>${FILTERS.map(([value, words]) => html`<option key=${words} value=${value}>${words}</option>`)}</select></label>
    <label>By label <input value=${form.label} placeholder="region" autocomplete="off" spellcheck=${false} onInput=${set("label")} /></label>
    <button type="submit" class="primary">Try it</button></form></section>`;
}

export function Queries({ query }) {
  const ws = query.get("ws") ?? "";
  const live = useLive("queries", { ws });
  const { data, error } = live;
  if (error && !data) return html`<h1>Queries</h1><${Failure} status=${error} onRetry=${live.retry} />`;
  if (!data) return html`<h1>Queries</h1><${Loading} what="queries" />`;
  const rows = data.objects;
  return html`<h1>Queries</h1>
    ${rows.length === 0 ? html`<${Empty} title="No queries yet" command="skerry query deployments --select 'count()' --group-by 'location.labels.region'">A StatusQuery asks the copies at all edges one question and keeps the answer up to date. Build one below, or ask once in a terminal:<//>`
    : html`<div class="wide" tabindex="0" role="region" aria-label="Queries"><table><thead><tr><th scope="col">Query</th><th scope="col">Workspace</th><th scope="col" class="number">Rows</th><th scope="col">State</th></tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${row.ws + row.name}><th scope="row"><${Link} to=${address(["queries", row.ws, row.name])}><bdi>${row.name}</bdi><//></th><td><bdi>${row.ws}</bdi></td><td class="number">${count(row.rows)}</td><td><bdi>${row.problem || "answered"}</bdi></td></tr>`)}</tbody></table></div>`}
    <${Builder} ws=${ws} />`;
}

/** Return the numbers of an answer that can be plotted: of each row its first number. */
export function numbersOf({ columns = [], rows = [] }) {
  const column = columns.findIndex((_, at) => rows.some((values) => typeof values[at] === "number"));
  if (column < 0) return [];
  return rows.slice(0, 6).map((values) => ({
    label: values.filter((value) => typeof value === "string").join(" ") || columns[column].name,
    value: typeof values[column] === "number" ? values[column] : null,
  }));
}

/** A plot of what was seen since the view was opened; the table beside it says the same in words. */
function Plot({ answer }) {
  const box = useRef(null);
  const seen = useRef({ labels: "", times: [], series: [] });
  const plot = useRef(null);
  useWide(box, plot);
  const latest = useRef(answer);
  latest.current = answer;
  const point = () => {
    const numbers = numbersOf(latest.current);
    if (!numbers.length || document.hidden) return;
    const labels = numbers.map((each) => each.label).join("\n");
    if (seen.current.labels !== labels) seen.current = { labels, times: [], series: numbers.map(() => []) };
    const { times, series } = seen.current;
    times.push(Date.now() / 1000);
    numbers.forEach((each, index) => series[index].push(each.value));
    if (times.length > MAX_POINTS) [times, ...series].forEach((values) => values.shift());
    draw(box.current, plot, numbers, [times, ...series]);
  };
  useEffect(point, [answer]);
  useEffect(() => {
    const timer = window.setInterval(point, POINT_MS);
    return () => {
      window.clearInterval(timer);
      plot.current?.chart.destroy();
    };
  }, []);
  return html`<div class="plot" ref=${box} aria-hidden="true"></div>`;
}

/** Return the plotting library, and its style sheet with it: both are fetched by who plots. */
async function charts() {
  const sheet = styled(new URL("../../vendor/uplot.css", import.meta.url).href);
  const [module] = await Promise.all([import("../../vendor/uplot.js"), sheet]);
  return module.default;
}

async function draw(box, plot, numbers, values) {
  const Chart = await charts();
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
  const chart = new Chart({ width: box.clientWidth, height: PLOT_HEIGHT, legend: { show: numbers.length > 1, live: false }, cursor: { show: false }, axes: [axis, axis], series }, values, box);
  plot.current = { chart, labels };
}

/** Keep a plot as wide as its box. */
function useWide(box, plot) {
  useEffect(() => {
    const watched = new ResizeObserver(() => plot.current?.chart.setSize({ width: box.current.clientWidth, height: PLOT_HEIGHT }));
    watched.observe(box.current);
    return () => watched.disconnect();
  }, []);
}

function cellOf(value) {
  if (value === null || value === undefined) return "–";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

export function Query({ rest }) {
  const [ws, name] = rest;
  const live = useLive("query", { ws, name });
  const { data, error } = live;
  if (error && !data) return html`<h1><bdi>${name}</bdi></h1><${Failure} status=${error} onRetry=${live.retry} />`;
  if (!data) return html`<h1><bdi>${name}</bdi></h1><${Loading} what="the query" />`;
  const { columns, rows } = data;
  return html`<h1>Query <bdi>${name}</bdi> <span class="quiet"><bdi>${ws}</bdi></span></h1>
    <${Plot} answer=${data} />
    ${!rows.length && html`<p class="quiet">No rows yet.</p>`}
    ${rows.length > 0 && html`<div class="wide" tabindex="0" role="region" aria-label="Rows"><table><thead><tr>${columns.map((column, at) => html`<th key=${at} scope="col" class=${rows.some((values) => typeof values[at] === "number") ? "number" : ""}><bdi>${column.name}</bdi>${column.approximate ? " (within 1 %)" : ""}</th>`)}</tr></thead>
      <tbody>${rows.map((values, index) => html`<tr key=${index}>${values.map((value, at) => html`<td key=${at} class=${typeof value === "number" ? "number" : ""}><bdi>${cellOf(value)}</bdi></td>`)}</tr>`)}</tbody></table></div>`}
    ${data.omitted > 0 && html`<p class="quiet">${count(data.omitted)} more rows are not shown.</p>`}
    ${data.stale > 0 && html`<p class="quiet">${count(data.stale)} reports are stale.</p>`}
    <section aria-labelledby="conditions"><h2 id="conditions">Conditions</h2><${Conditions} conditions=${data.conditions} /></section>`;
}
