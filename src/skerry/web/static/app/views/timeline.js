// What happened at three in the morning? Decisions in a lane, and a scrubber that replays where the
// placement led: the moment it stands on is in the address, so a link shows the same.

import { html, useCallback, useMemo } from "../ui.js";
import { address, Link, navigate, requery } from "../router.js";
import { bytes, useAnswer, useLive } from "../live.js";
import { EdgeMap } from "../map.js";
import { THEN } from "../states.js";
import { useKey } from "../keys.js";
import { Empty, Failure, Loading } from "../notices.js";
import { clockTime, count, instant } from "../format.js";

const SPANS = [["1h", 3600e3], ["6h", 6 * 3600e3], ["24h", 24 * 3600e3], ["7d", 7 * 86400e3]];
const MAX_SHOWN = 500;
const CHOICES = { q: "", rows: [0, 200] };

/** Return the part of a span at which *time* lies, between 0 and 1. */
export function positionOf(time, from, to) {
  return to > from ? Math.min(1, Math.max(0, (instant(time) - from) / (to - from))) : 0;
}

function Lane({ lane, from, to, at }) {
  return html`<li class="lane"><span class="lane-name"><bdi>${lane.about}</bdi></span>
    <svg class="lane-line" viewBox="0 0 1000 24" preserveAspectRatio="none" aria-hidden="true" focusable="false"><line x1="0" x2="1000" y1="12" y2="12" class="lane-axis" />
      ${lane.events.map((event, index) => html`<circle key=${index} cx=${positionOf(event.time, from, to) * 1000} cy="12" r="5" class="lane-dot lane-${event.state ?? "unknown"}" />`)}
      <line x1=${positionOf(at / 1000, from, to) * 1000} x2=${positionOf(at / 1000, from, to) * 1000} y1="0" y2="24" class="lane-now" /></svg></li>`;
}

/** Whom to ask about, while nobody is chosen. */
function Choices() {
  const { data, error, retry } = useLive("placements", CHOICES);
  if (error && !data) return html`<${Failure} status=${error} onRetry=${retry} />`;
  if (!data) return html`<${Loading} what="placements" />`;
  if (!data.rows.length) return html`<${Empty} title="No placements yet">What is decided about a placement is kept for thirty days.<//>`;
  return html`<section aria-labelledby="choices"><h2 id="choices">About which placement?</h2><ul class="listed">${data.rows.map(({ ws, name }) => html`<li key=${ws + name}><${Link} to=${address(["timeline"], { about: `${ws}/${name}` })}><bdi>${name}</bdi><//> <span class="quiet"><bdi>${ws}</bdi></span></li>`)}</ul></section>`;
}

/** Where the placement led at a moment, beside where it leads now. */
function Replay({ about, at, news }) {
  const then = useAnswer("then", useMemo(() => ({ about, at }), [about, at]), news);
  const { data, error } = then;
  const cells = useMemo(() => (data ? bytes(data.cells) : null), [data?.cells]);
  const lookup = useCallback(async (index) => data.edges[index] ?? Promise.reject(new Error("not named")), [data]);
  if (error && !data) return html`<${Failure} status=${error} />`;
  if (!data) return html`<${Loading} what="that moment" />`;
  const effect = (index) => cells.reduce((sum, cell) => sum + (cell === index ? 1 : 0), 0);
  return html`<section aria-labelledby="then"><h2 id="then">Edges at ${clockTime(data.at)} <span class="quiet">${count(data.then)}, now ${count(data.now)} · <${Link} to=${address(["fleet"], { at: data.at })}>the whole fleet then<//></span></h2>
    ${cells.length === 0 ? html`<p class="quiet">It led nowhere then, and leads nowhere now.</p>` : html`
    <ul class="totals" data-then>${THEN.map(({ key, word, shape }, index) => html`<li key=${key} class="effect-${key}"><span aria-hidden="true">${shape}</span> <strong>${count(effect(index))}</strong> ${word}</li>`)}</ul>
    <${EdgeMap} title="Map of that moment" groups=${[{ value: "edges then and now", count: cells.length }]} cells=${cells} by="" palette=${THEN} lookup=${lookup}
      onPick=${(index) => lookup(index).then((row) => navigate(address(["edges", row.ws, row.name])), () => null)} />`}</section>`;
}

/** The lane of a placement, its events, and the moment that the scrubber stands on. */
function Story({ query, about }) {
  const slash = about.lastIndexOf("/");
  const place = useMemo(() => ({ ws: about.slice(0, slash), name: about.slice(slash + 1) }), [about]);
  const news = useLive("decided", place).data?.decided ?? null;
  const span = SPANS.find(([word]) => word === query.get("span")) ?? SPANS[0];
  const end = instant(query.get("to") ?? "");
  const to = Number.isNaN(end) ? null : new Date(end).toISOString();
  const view = useMemo(() => {
    const last = to ? instant(to) : Date.now();
    return { from: new Date(last - span[1]).toISOString(), to: to ?? "", about };
  }, [to, span[0], about]);
  const live = useAnswer("timeline", view, news);
  const { data, error } = live;
  const from = instant(view.from);
  const last = data?.to ? instant(data.to) : to ? instant(to) : Date.now();
  const chosen = instant(query.get("at") ?? "");
  const at = Number.isNaN(chosen) ? last : chosen;
  const seek = (moment) => requery({ at: new Date(Math.min(last, Math.max(from, moment))).toISOString() });
  useKey("earlier", "[", "Earlier", () => seek(at - span[1] / 60));
  useKey("later", "]", "Later", () => seek(at + span[1] / 60));
  const lanes = data?.lanes ?? [];
  const events = lanes.flatMap((lane) => lane.events.map((event) => ({ ...event, about: lane.about }))).sort((one, other) => instant(other.time) - instant(one.time));
  return html`
    <div class="toolbar"><label class="by">span <select onChange=${(event) => requery({ span: event.target.value })}>${SPANS.map(([word]) => html`<option key=${word} value=${word} selected=${word === span[0]}>${word}</option>`)}</select></label>
      <label class="by scrubber">at <input type="range" min=${from} max=${last} step="1000" value=${at} aria-valuetext=${clockTime(at / 1000)} onInput=${(event) => seek(Number(event.target.value))} /></label>
      <output>${clockTime(at / 1000)}</output>
      <button type="button" aria-pressed=${Number.isNaN(chosen)} onClick=${() => requery({ to: "", at: "" })}>Live</button></div>
    ${error && html`<${Failure} status=${error} onRetry=${live.retry} />`}
    ${!data && !error && html`<${Loading} what="the timeline" />`}
    ${data && !lanes.length && html`<${Empty} title="Nothing was decided in this span" command="skerry history placement NAME">Decisions are kept for thirty days. A longer span, or another placement, may have some.<//>`}
    ${lanes.length > 0 && html`<ol class="lanes" aria-label="Lanes">${lanes.map((lane) => html`<${Lane} key=${lane.about} lane=${lane} from=${from} to=${last} at=${at} />`)}</ol>`}
    ${!Number.isNaN(chosen) && html`<${Replay} about=${about} at=${query.get("at")} news=${news} />`}
    ${lanes.length > 0 && html`<section aria-labelledby="events"><h2 id="events">Decisions</h2><div class="wide" tabindex="0" role="region" aria-label="Events"><table><thead><tr><th scope="col">Time</th><th scope="col">What</th><th scope="col">Who</th><th scope="col">Then</th></tr></thead>
      <tbody>${events.slice(0, MAX_SHOWN).map((event, index) => html`<tr key=${index} class=${instant(event.time) > at ? "later" : ""}><td><time datetime=${event.time}>${clockTime(event.time)}</time></td><td>${event.kind ? `${event.kind}: ` : ""}<bdi>${event.text}</bdi></td><td><bdi>${event.who ?? ""}</bdi></td>
        <td><button type="button" class="small" aria-label="replay ${clockTime(event.time)}" onClick=${() => requery({ at: event.time }, { replace: false })}>Replay</button></td></tr>`)}</tbody></table>
      ${events.length > MAX_SHOWN && html`<p class="quiet">and ${count(events.length - MAX_SHOWN)} earlier ones: choose a shorter span.</p>`}</div></section>`}`;
}

export function Timeline({ query }) {
  const about = query.get("about") ?? "";
  return html`<h1>Timeline ${about && html`<span class="quiet">of <bdi>${about}</bdi> · <${Link} to=${address(["timeline"])}>another<//></span>`}</h1>
    ${about.includes("/") ? html`<${Story} key=${about} query=${query} about=${about} />` : html`<${Choices} />`}`;
}
