// What an object should be and what the mailbox of an edge has of it, line by line. A line that is on
// one side alone has a sign besides its colour.

import { html, useMemo } from "./ui.js";
import { useAnswer } from "./live.js";
import { Failure, Loading } from "./notices.js";
import { counted } from "./format.js";
import { diffLines } from "../vendor/diff/diff/line.js";

// Lines around a difference; the rest is folded to one line that says how many.
const AROUND = 3;

/** Return *value* with its keys in order, so that the same content is the same text. */
function ordered(value) {
  if (Array.isArray(value)) return value.map(ordered);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, ordered(value[key])]));
}

/** Return the lines of a difference: a sign and a text each, what is the same far from it folded. */
export function differenceLines(before, after) {
  const text = (value) => (value === null ? "" : `${JSON.stringify(ordered(value), null, 2)}\n`);
  const lines = diffLines(text(before), text(after)).flatMap((part) =>
    part.value.split("\n").slice(0, -1).map((line) => ({ sign: part.added ? "+" : part.removed ? "−" : " ", text: line })));
  const near = lines.map((_, at) => lines.slice(Math.max(0, at - AROUND), at + AROUND + 1).some(({ sign }) => sign !== " "));
  const shown = [];
  for (let at = 0; at < lines.length; at++) {
    if (near[at]) shown.push(lines[at]);
    else if (shown.at(-1)?.sign === "…") shown.at(-1).folded += 1;
    else shown.push({ sign: "…", text: "", folded: 1 });
  }
  return shown;
}

export function Difference({ ws, object, edge, onClose }) {
  const asked = useMemo(() => ({ ws, object, edge }), [ws, object, edge]);
  const { data, error } = useAnswer("difference", asked);
  const lines = useMemo(() => (data ? differenceLines(data.delivered, data.wanted) : []), [data]);
  const same = data && lines.every(({ sign }) => sign === "…");
  return html`<section class="difference" aria-labelledby="difference"><h2 id="difference">Delivered and wanted: <bdi>${object}</bdi></h2>
    ${error && html`<${Failure} status=${error} />`}
    ${!data && !error && html`<${Loading} what="the difference" />`}
    ${data && data.delivered === null && html`<p>The mailbox of this edge does not have it yet.</p>`}
    ${same && html`<p>✓ The mailbox has it as it is wanted.</p>`}
    ${data && !same && html`<pre class="command" tabindex="0" aria-label="lines that differ">${lines.map(({ sign, text, folded }, at) => html`<div key=${at} class=${{ "+": "line-added", "−": "line-removed" }[sign] ?? "quiet"}>${folded ? `… the same: ${counted(folded, "line")}` : `${sign} ${text}`}</div>`)}</pre>`}
    <p><button type="button" onClick=${onClose}>Close</button></p></section>`;
}
