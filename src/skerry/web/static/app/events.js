// What was recorded about an edge, as `kubectl get events` lists it.

import { html, useMemo } from "./ui.js";
import { useAnswer } from "./live.js";
import { Empty, Failure, Loading } from "./notices.js";
import { clockTime, count } from "./format.js";

/** @param {{ws: string, name: string}} props */
export function Events({ ws, name }) {
  const asked = useMemo(() => ({ ws, name }), [ws, name]);
  const { data, error, asking, retry } = useAnswer("events", asked);
  return html`<section aria-labelledby="events"><h2 id="events">Events</h2>
    ${error && html`<${Failure} status=${error} onRetry=${retry} />`}
    ${!data && !error && html`<${Loading} what="events" />`}
    ${data && !data.events.length && html`<${Empty} title="No events" command=${`kubectl ws ${ws}\nkubectl get events`}>Nothing was recorded about this edge lately. The hub keeps events for an hour; the timeline of a placement reaches back for thirty days.<//>`}
    ${data?.events.length > 0 && html`<div class="wide" tabindex="0" role="region" aria-label="Table of events"><table><thead><tr><th scope="col">Time</th><th scope="col">Type</th><th scope="col">Reason</th><th scope="col">About</th><th scope="col">Message</th><th scope="col" class="number">Count</th></tr></thead>
      <tbody>${data.events.map((event, index) => html`<tr key=${index}><td><time datetime=${event.time}>${event.time ? clockTime(event.time) : ""}</time></td><td><bdi>${event.type}</bdi></td><td><bdi>${event.reason}</bdi></td><td><bdi>${event.kind}</bdi></td><td><bdi>${event.message}</bdi></td><td class="number">${count(event.count)}</td></tr>`)}</tbody></table></div>`}
    ${data && html`<p class="actions"><button type="button" disabled=${asking} onClick=${retry}>Refresh</button></p>`}</section>`;
}
