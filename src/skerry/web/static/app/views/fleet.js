// Is my fleet all right? One sentence, the counts, a map, and the worst first; now, or at a moment
// that the address names.

import { html, useCallback, useEffect, useMemo, useState } from "../ui.js";
import { address, Link, navigate, requery } from "../router.js";
import { ask, connection } from "../socket.js";
import { filterOf, fleetView, FIRST_ROWS } from "../wire.js";
import { useLive } from "../live.js";
import { announce } from "../announce.js";
import { Empty, Failure, Loading } from "../notices.js";
import { Age, Mark } from "../marks.js";
import { EdgeMap } from "../map.js";
import { Past, useTime } from "../past.js";
import { VirtualRows } from "../rows.js";
import { PAST, STATES } from "../states.js";
import { count, counted, sentenceCase } from "../format.js";

const COLUMNS = [["state", "State"], ["name", "Edge"], ["problem", "Problem"], ["heard", "Heard"]];
const THEN_COLUMNS = [["state", "State"], ["name", "Edge"], ["problem", "Placements then"]];

/** One button per state: how many there are, and a filter by it. */
export function Counts({ counts, status }) {
  return html`<ul class="counts" aria-label="Edges by state">
    ${STATES.map(({ key, word, shape }) => html`<li key=${key}><button type="button" class="count mark-${key}" aria-pressed=${status === key}
      onClick=${() => requery({ status: status === key ? "" : key }, { replace: false })}>
      <span class="shape" aria-hidden="true">${shape}</span><strong>${count(counts?.[key] ?? 0)}</strong> ${word}</button></li>`)}
  </ul>`;
}

export function GroupBy({ keys, by }) {
  const known = by && !keys.includes(by) ? [by, ...keys] : keys;
  return html`<label class="by">group by <select onChange=${(event) => requery({ by: event.target.value })}>
    <option value="" selected=${!by}>nothing</option>
    ${known.map((key) => html`<option key=${key} value=${key} selected=${key === by}>${key}</option>`)}
  </select></label>`;
}

// Where a destination's inventory is not the viewer's to read, it has no path, and no link.
export const UNNAMED = "?";

/** The cells of the list of edges, as fleet and placement show them. */
export function edgeCells(row) {
  return [
    html`<${Mark} state=${row.state} />`,
    row.ws === UNNAMED ? html`<bdi>${row.name}</bdi>` : html`<${Link} to=${address(["edges", row.ws, row.name])}><bdi>${row.name}</bdi><//>`,
    html`<bdi title=${row.problem}>${row.problem}</bdi>`,
    html`<${Age} since=${row.heard} />`,
  ];
}

export function Fleet({ query }) {
  const [range, setRange] = useState(FIRST_ROWS);
  const by = query.get("by") ?? "";
  const at = query.get("at") ?? "";
  const q = filterOf(query);
  const view = useMemo(() => fleetView(query, range), [q, by, at, range]);
  const live = useLive("fleet", view);
  const { data, error } = live;
  const stale = connection.value !== "live";
  const onWindow = useCallback((from, to) => setRange(([first, end]) => (first === from && end === to ? [first, end] : [from, to])), []);
  const lookup = useCallback((index) => ask("cell", { q, by, index, ...(at ? { at } : {}) }), [q, by, at]);
  const earlier = useTime(at);
  useEffect(() => {
    if (data) announce(data.sentence);
  }, [data?.sentence]);
  if (error && !data) return html`<h1>Fleet</h1>${at && html`<${Past} at=${at} />`}<${Failure} status=${error} onRetry=${live.retry} />`;
  if (!data) return html`<h1 class="unseen">Fleet</h1><${Loading} what="the fleet" />`;
  if (!data.total && !q) return html`<h1>Fleet</h1><${NoEdges} />`;
  const matching = data.matching ?? data.cells.length;
  return html`
    <h1 class="sentence">${sentenceCase(data.sentence)}</h1>
    ${at && html`<${Past} at=${at} data=${data} />`}
    ${error && html`<${Failure} status=${error} />`}
    <div class="toolbar"><${Counts} counts=${data.counts} status=${query.get("status") ?? ""} /><${GroupBy} keys=${data.keys ?? []} by=${by} />
      ${!at && html`<button type="button" title="The fleet as it was ([)" onClick=${earlier}>Earlier</button>`}</div>
    ${matching === 0 ? html`<${Nothing} q=${q} at=${at} total=${data.total} />` : html`
    <div class="two">
      <section aria-label="Map"><${EdgeMap} groups=${data.groups} cells=${data.cells} by=${by} lookup=${lookup} stale=${stale} palette=${at ? PAST : STATES}
        onPick=${(index) => lookup(index).then((row) => navigate(address(["edges", row.ws, row.name])), () => null)} /></section>
      <section aria-labelledby="worst"><h2 id="worst">Worst first <span class="quiet">${count(matching)}</span></h2>
        <${VirtualRows} label="Edges, worst first" total=${matching} from=${live.view?.rows?.[0] ?? 0} rows=${data.rows} columns=${at ? THEN_COLUMNS : COLUMNS} cells=${edgeCells} onWindow=${onWindow} stale=${stale} /></section>
    </div>`}`;
}

/** No edge is left: by the filter, or because nobody knows of any then. */
function Nothing({ q, at, total }) {
  if (at && !q) return html`<${Empty} title="No edge is known of then">None of ${counted(total, "edge")} that you may see was here.<//>`;
  return html`<${Empty} title="Nothing matches the filter">None of ${counted(total, "edge")} matches <q>${q}</q>. <button type="button" onClick=${() => requery({ q: "", status: "" })}>Show all</button><//>`;
}

const JOIN = `kubectl ws root:inventory
kubectl apply -f - <<< '{apiVersion: workload.kcp.io/v1alpha1, kind: SyncTarget, metadata: {name: north}}'
skerry edge bootstrap north --imw root:inventory -o north-hub.kubeconfig
skerry syncer --from-kubeconfig north-hub.kubeconfig --to-kubeconfig EDGE_KUBECONFIG --sync-target-name north`;

function NoEdges() {
  return html`<${Empty} title="No edges yet" command=${JOIN}>
    An edge is here once a SyncTarget stands for it in an inventory workspace that you may read. To join one, in a terminal:<//>`;
}
