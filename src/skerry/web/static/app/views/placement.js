// Where does it run? One placement: the stages of its objects, its destinations as map and list, and
// the question why something is not where it should be.

import { html, useCallback, useMemo, useState } from "../ui.js";
import { address, Link, navigate, requery } from "../router.js";
import { ask, connection } from "../socket.js";
import { useLive } from "../live.js";
import { useKey } from "../keys.js";
import { Failure, Loading } from "../notices.js";
import { Bar } from "../marks.js";
import { Conditions } from "../conditions.js";
import { EdgeMap } from "../map.js";
import { Graph } from "../graph.js";
import { VirtualRows } from "../rows.js";
import { Counts, GroupBy, edgeCells } from "./fleet.js";
import { filterOf } from "../wire.js";
import { WhyNot } from "./whynot.js";
import { count, objectName, sentenceCase } from "../format.js";

const COLUMNS = [["state", "State"], ["name", "Edge"], ["problem", "Problem"], ["heard", "Heard"]];

/** Of what the viewer may not list nothing is shown, and that is said. */
function Hidden({ hidden, kind }) {
  const found = (hidden ?? []).filter((each) => each.includes(kind));
  return found.length > 0 && html`<p class="problem">You may not list ${found.join(" and ")} here, so nothing of them is shown.</p>`;
}

function Stages({ stages, hidden }) {
  if (!stages?.length) return hidden?.length ? null : html`<p class="quiet">Nothing is summed up: it selects no objects, or they were selected a moment ago.</p>`;
  return html`<div class="wide" tabindex="0" role="region" aria-label="Stages of its objects"><table class="stages">
    <thead><tr><th scope="col">Object</th><th scope="col" class="number">Wanted</th><th scope="col" class="number">Delivered</th><th scope="col" class="number">Reported</th><th scope="col" class="number">Healthy</th><th scope="col">Healthy of wanted</th></tr></thead>
    <tbody>${stages.map((stage) => html`<tr key=${objectName(stage.object)}><th scope="row"><bdi>${objectName(stage.object)}</bdi></th>
      <td class="number">${count(stage.wanted)}</td><td class="number">${count(stage.delivered)}</td><td class="number">${count(stage.reported)}</td><td class="number">${count(stage.healthy)}</td>
      <td><${Bar} part=${stage.healthy} whole=${stage.wanted} /></td></tr>`)}</tbody></table></div>`;
}

function Problems({ problems }) {
  if (!problems?.length) return null;
  return html`<section aria-labelledby="problems"><h2 id="problems">Problems</h2><ul class="problems">
    ${problems.map((each, index) => html`<li key=${index}><strong>${count(each.count ?? 1)}</strong> ${each.reason} <bdi>${each.message ?? ""}</bdi></li>`)}</ul></section>`;
}

export function Placement({ rest, query }) {
  const [ws, name] = rest;
  const [range, setRange] = useState([0, 40]);
  const by = query.get("by") ?? "";
  const q = filterOf(query);
  const view = useMemo(() => ({ ws, name, q, by, rows: range }), [ws, name, q, by, range]);
  const live = useLive("placement", view);
  const { data, error } = live;
  const onWindow = useCallback((from, to) => setRange((known) => (known[0] === from && known[1] === to ? known : [from, to])), []);
  const lookup = useCallback((index) => ask("cell", { q, by, index, placement: { ws, name } }), [q, by, ws, name]);
  // One object of it has an address of its own: .../objects/RESOURCE/NAMESPACE/NAME.
  const object = rest[2] === "objects" ? rest.slice(3).join("/") : "";
  const words = useMemo(() => (object ? new URLSearchParams({ ...Object.fromEntries(query), object, explain: "yes" }) : query), [object, query]);
  const asking = words.has("explain");
  const drawn = query.get("show") === "graph";
  const why = () => requery({ explain: "yes" }, { replace: false });
  useKey("explain", "x", "Why is something not there?", why);
  const whyNot = asking && html`<${WhyNot} key=${object} ws=${ws} name=${name} query=${words} stages=${data?.stages ?? []} rows=${data?.rows ?? []} />`;
  if (!data) return html`<h1><bdi>${name}</bdi></h1>${error ? html`<${Failure} status=${error} onRetry=${live.retry} />` : html`<${Loading} what="the placement" />`}${whyNot}`;
  const matching = data.matching ?? data.cells?.length ?? 0;
  const stale = connection.value !== "live";
  return html`
    <h1>Placement <bdi>${name}</bdi> <span class="quiet"><bdi>${ws}</bdi></span></h1>
    <p>${sentenceCase(data.sentence ?? "")}</p>
    ${error && html`<${Failure} status=${error} />`}
    <p class="actions"><button type="button" onClick=${why}>Why not…</button> <button type="button" aria-pressed=${drawn} onClick=${() => requery({ show: drawn ? "" : "graph" }, { replace: false })}>Graph</button> <${Link} class="action" to=${address(["whatif"], { ws, placement: name })}>What if…<//> <${Link} class="action" to=${address(["timeline"], { about: `${ws}/${name}` })}>Timeline<//></p>
    ${whyNot}
    ${drawn && html`<section aria-labelledby="graph"><h2 id="graph">Graph</h2><${Graph} name=${name} stages=${data.stages ?? []} total=${data.total ?? matching} counts=${data.counts} /></section>`}
    <section aria-labelledby="stages"><h2 id="stages">Objects</h2><${Hidden} hidden=${data.hidden} kind="statussummaries" /><${Stages} stages=${data.stages} hidden=${data.hidden} /></section>
    <${Problems} problems=${data.problems} />
    <section aria-labelledby="destinations"><h2 id="destinations">Destinations <span class="quiet">${count(data.total ?? matching)}</span></h2>
      <div class="toolbar"><${Counts} counts=${data.counts} status=${query.get("status") ?? ""} /><${GroupBy} keys=${data.keys ?? []} by=${by} /></div>
      <${Hidden} hidden=${data.hidden} kind="slices" />
      ${matching === 0 ? !data.hidden?.some((each) => each.includes("slices")) && html`<p class="quiet">${q ? "No destination matches the filter." : "It leads nowhere yet: ask why not."}</p>` : html`<div class="two">
        <${EdgeMap} title="Map of destinations" groups=${data.groups} cells=${data.cells} by=${by} lookup=${lookup} stale=${stale}
          onPick=${(index) => lookup(index).then((row) => navigate(address(["edges", row.ws, row.name])), () => null)} />
        <${VirtualRows} label="Destinations, worst first" total=${matching} from=${live.view?.rows?.[0] ?? 0} rows=${data.rows} columns=${COLUMNS} cells=${edgeCells} onWindow=${onWindow} stale=${stale} />
      </div>`}</section>
    <section aria-labelledby="conditions"><h2 id="conditions">Conditions</h2><${Conditions} conditions=${data.conditions} /></section>`;
}
