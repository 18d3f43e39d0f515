// All placements the viewer may see, the worst first.

import { html, useCallback, useMemo, useState } from "../ui.js";
import { address, Link } from "../router.js";
import { connection } from "../socket.js";
import { useLive } from "../live.js";
import { Empty, Failure, Loading } from "../notices.js";
import { Bar, Mark } from "../marks.js";
import { VirtualRows } from "../rows.js";
import { count, counted } from "../format.js";

const COLUMNS = [["state", "State"], ["name", "Placement"], ["problem", "Healthy of wanted"], ["heard", "Part"]];

function placementCells(row) {
  return [
    html`<${Mark} state=${row.state} />`,
    html`<${Link} to=${address(["placements", row.ws, row.name])}><bdi>${row.name}</bdi><//> <span class="quiet"><bdi>${row.ws}</bdi></span>`,
    html`<bdi title=${row.problem}>${count(row.healthy)} of ${count(row.wanted)}${row.problem ? ` · ${row.problem}` : ""}</bdi>`,
    html`<${Bar} part=${row.healthy} whole=${row.wanted} />`,
  ];
}

export function Placements({ query }) {
  const [range, setRange] = useState([0, 40]);
  const q = query.get("q") ?? "";
  const view = useMemo(() => ({ q, rows: range }), [q, range]);
  const live = useLive("placements", view);
  const { data, error } = live;
  const onWindow = useCallback((from, to) => setRange((known) => (known[0] === from && known[1] === to ? known : [from, to])), []);
  if (error && !data) return html`<h1>Placements</h1><${Failure} status=${error} onRetry=${live.retry} />`;
  if (!data) return html`<h1>Placements</h1><${Loading} what="placements" />`;
  const total = data.matching ?? data.total ?? data.rows.length;
  return html`<h1>${counted(total, "placement")}</h1>
    ${error && html`<${Failure} status=${error} />`}
    ${total === 0 ? html`<${Empty} title=${q ? "No placement matches" : "No placements yet"} command=${q ? "" : "kubectl ws root:my-workspace\nkubectl apply -f placement.yaml"}>
      ${q ? "Nothing that you may see matches the filter." : "An EdgePlacement says which objects of its workspace run at which Locations. To make one, in a terminal:"}<//>`
    : html`<${VirtualRows} label="Placements, worst first" total=${total} from=${live.view?.rows?.[0] ?? 0} rows=${data.rows} columns=${COLUMNS} cells=${placementCells} onWindow=${onWindow} stale=${connection.value !== "live"} />`}`;
}
