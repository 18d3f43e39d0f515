// The last lines that a pod at an edge wrote, through the tunnel that its syncer dials.

import { html, useEffect, useMemo, useRef } from "./ui.js";
import { useAnswer } from "./live.js";
import { requery } from "./router.js";
import { Failure, Loading } from "./notices.js";

/** Kinds whose pods can be asked for by the name of what made them. */
const WORKLOADS = new Set(["deployments", "statefulsets", "daemonsets", "replicasets", "jobs"]);

/** Return what a log is asked for by, where an object has pods; else nothing. @param {any} object */
export function podWord(object) {
  if (object.resource === "pods" && !object.group) return `${object.namespace}/${object.name}`;
  return WORKLOADS.has(object.resource) && object.namespace ? `${object.namespace}/${object.resource.slice(0, -1)}/${object.name}` : "";
}

/** @param {{ws: string, edge: string, word: string, previous: boolean, onClose: () => void}} props */
export function Logs({ ws, edge, word, previous, onClose }) {
  const slash = word.indexOf("/");
  const asked = useMemo(() => ({ ws, edge, namespace: word.slice(0, slash), pod: word.slice(slash + 1), previous }), [ws, edge, word, previous]);
  const { data, error, asking, retry } = useAnswer("log", asked);
  const lines = useRef(null);
  useEffect(() => {
    if (lines.current) lines.current.scrollTop = lines.current.scrollHeight;
  }, [data?.text]);
  return html`<section class="logs" aria-labelledby="logs"><h2 id="logs">Log of <bdi>${data?.pod ?? word}</bdi>${previous ? ", before it last started" : ""}</h2>
    ${error && html`<${Failure} status=${error} onRetry=${retry} />`}
    ${!data && !error && html`<${Loading} what="the log" />`}
    ${data && !error && (data.text ? html`<pre class="command log" ref=${lines} tabindex="0" aria-label="last lines">${data.text}</pre>` : html`<p class="quiet">It has written nothing yet.</p>`)}
    <p class="actions">${data && html`<button type="button" disabled=${asking} onClick=${retry}>Refresh</button>`} <button type="button" aria-pressed=${previous} onClick=${() => requery({ previous: previous ? "" : "yes" }, { replace: false })}>Previous</button> <button type="button" onClick=${onClose}>Close</button></p></section>`;
}
