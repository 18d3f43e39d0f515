// What is this edge doing? Its heartbeat, its conditions, and every object that should be there.

import { html } from "../ui.js";
import { address, Link, navigate, requery } from "../router.js";
import { useLive } from "../live.js";
import { Empty, Failure, Loading } from "../notices.js";
import { Age, Check, Mark } from "../marks.js";
import { Conditions, Labels } from "../conditions.js";
import { objectName } from "../format.js";
import { objectWord } from "./whynot.js";
import { Difference } from "../difference.js";
import { Events } from "../events.js";
import { Logs, podWord } from "../logs.js";
import { Exec } from "../exec.js";
import { useKey } from "../keys.js";

function why(entry, edge) {
  return address(["placements", entry.placement.ws, entry.placement.name], { explain: "yes", edge, object: objectWord(entry.object) });
}

function difference(entry, edge) {
  const [ws, name] = edge;
  return address(["edges", ws, name], { diff: objectWord(entry.object), from: entry.placement.ws });
}

/** Return the address of the log of an object's pods; nothing of an object that has none. */
function log(entry, edge) {
  const [ws, name] = edge;
  const word = entry.placement ? podWord(entry.object) : "";
  return word && address(["edges", ws, name, "logs"], { logs: word, from: entry.placement.ws });
}

/** Return the address at which a command can be run in an object's pods; nothing of one that has none. */
function exec(entry, edge) {
  const [ws, name] = edge;
  const word = entry.placement ? podWord(entry.object) : "";
  const slash = word.indexOf("/");
  return word && address(["edges", ws, name, "exec"], { from: entry.placement.ws, ns: word.slice(0, slash), pod: word.slice(slash + 1) });
}

function Objects({ objects, placements, edge, location }) {
  if (!objects?.length && placements?.length) {
    return html`<p>Placements that lead here: ${placements.map(({ ws, name }, index) => html`${index ? ", " : ""}<${Link} key=${ws + name} to=${address(["placements", ws, name])}><bdi>${name}</bdi><//>`)}. <span class="quiet">What became of their objects was not summed up yet, or is not yours to list.</span></p>`;
  }
  if (!objects?.length) return html`<p class="quiet">No placement that you may see leads here.</p>`;
  return html`<div class="wide" tabindex="0" role="region" aria-label="Table of objects"><table>
    <thead><tr><th scope="col">Object</th><th scope="col">Placement</th><th scope="col">Wanted</th><th scope="col">Delivered</th><th scope="col">Healthy</th><th scope="col">Cause</th><th scope="col">Ask</th></tr></thead>
    <tbody>${objects.map((entry, index) => html`<tr key=${index}><th scope="row"><bdi>${objectName(entry.object)}</bdi></th>
      <td>${entry.placement ? html`<${Link} to=${address(["placements", entry.placement.ws, entry.placement.name])}><bdi>${entry.placement.name}</bdi><//>` : ""}</td>
      <td><${Check} value=${entry.wanted} /></td><td><${Check} value=${entry.delivered} /></td><td><${Check} value=${entry.healthy} /></td>
      <td><bdi>${entry.cause ?? ""}</bdi></td>
      <td>${entry.placement && html`<${Link} to=${why(entry, `${edge[0]}/${location}`)} aria-label="why ${objectName(entry.object)} is as it is">why<//> · <${Link} to=${difference(entry, edge)} aria-label="diff of ${objectName(entry.object)}">diff<//>`}
        ${log(entry, edge) && html` · <${Link} to=${log(entry, edge)} aria-label="log of ${objectName(entry.object)}">log<//> · <${Link} to=${exec(entry, edge)} aria-label="exec in ${objectName(entry.object)}">exec<//>`}</td></tr>`)}</tbody></table></div>`;
}

/** What an edge is looked at by; each has an address of its own. */
const PARTS = [["objects", "Objects"], ["events", "Events"], ["logs", "Logs"], ["exec", "Exec"]];

/** Whose log, while nobody is chosen. */
function Workloads({ objects, edge }) {
  const found = (objects ?? []).filter((entry) => log(entry, edge));
  if (!found.length) return html`<${Empty} title="No workloads">Nothing that has pods is placed here by a placement that you may see.<//>`;
  return html`<section aria-labelledby="logs"><h2 id="logs">Whose log?</h2><ul class="listed">${found.map((entry, index) => html`<li key=${index}><${Link} to=${log(entry, edge)}><bdi>${objectName(entry.object)}</bdi><//> <span class="quiet"><bdi>${entry.placement.ws}</bdi></span></li>`)}</ul></section>`;
}

export function Edge({ rest, query }) {
  const [ws, name] = rest;
  const live = useLive("edge", { ws, name });
  const { data, error } = live;
  const first = data?.objects?.map((entry) => log(entry, rest)).find(Boolean);
  const running = data?.objects?.map((entry) => exec(entry, rest)).find(Boolean);
  const differing = data?.objects?.find((entry) => entry.placement && entry.healthy !== true) ?? data?.objects?.find((entry) => entry.placement);
  useKey("diff", "d", "Difference of the first object that is not well", () => differing && navigate(difference(differing, rest)));
  useKey("exec", "e", "Run a command in the first workload", () => running && navigate(running));
  useKey("logs", "l", "Log of the first workload", () => first && navigate(first));
  if (error && !data) return html`<h1><bdi>${name}</bdi></h1><${Failure} status=${error} onRetry=${live.retry} />`;
  if (!data) return html`<h1><bdi>${name}</bdi></h1><${Loading} what="the edge" />`;
  const location = data.location ?? name;
  // Whoever asks in another workspace than the inventory calls the edge by its path.
  const from = query.get("from") || ws;
  const called = from === ws ? name : `${ws}:${name}`;
  const part = PARTS.some(([key]) => key === rest[2]) ? rest[2] : "objects";
  const word = query.get("logs") ?? "";
  const place = (own) => address(["edges", ws, name, ...(own === "objects" ? [] : [own])]);
  const leave = (own) => navigate(place(own));
  return html`
    <h1>Edge <bdi>${name}</bdi> <span class="quiet"><bdi>${ws}</bdi></span></h1>
    <dl class="facts">
      ${data.state && html`<dt>State</dt><dd><${Mark} state=${data.state} /> <bdi>${data.problem ?? ""}</bdi></dd>`}
      <dt>Heard</dt><dd><${Age} since=${data.heard} />${data.heard ? " ago" : ""}</dd>
      ${data.version && html`<dt>Kubernetes</dt><dd><bdi>${data.version}</bdi></dd>`}
      <dt>Labels</dt><dd><${Labels} labels=${data.labels} /></dd>
    </dl>
    <nav class="parts" aria-label="Parts of the edge"><ul>${PARTS.map(([key, title]) => html`<li key=${key}><${Link} to=${place(key)} aria-current=${key === part ? "page" : undefined}>${title}<//></li>`)}</ul></nav>
    ${part === "objects" && html`<section aria-labelledby="objects"><h2 id="objects">Objects</h2><${Objects} objects=${data.objects} placements=${data.placements} edge=${rest} location=${location} /></section>`}
    ${query.get("diff") && html`<${Difference} key=${query.get("diff")} ws=${query.get("from") ?? ""} object=${query.get("diff")} edge=${`${ws}/${name}`} onClose=${() => requery({ diff: "", from: "" }, { replace: false })} />`}
    ${word ? html`<${Logs} key=${word} ws=${from} edge=${called} word=${word} previous=${query.get("previous") === "yes"} onClose=${() => leave(part === "logs" ? "objects" : part)} />` : part === "logs" && html`<${Workloads} objects=${data.objects} edge=${rest} />`}
    ${part === "events" && html`<${Events} ws=${ws} name=${name} />`}
    ${part === "exec" && html`<${Exec} ws=${from} edge=${called} query=${query} />`}
    <section aria-labelledby="conditions"><h2 id="conditions">Conditions</h2><${Conditions} conditions=${data.conditions} /></section>`;
}
