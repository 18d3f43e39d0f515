// Why is it not there? The chain an object takes to an edge, step by step, as `skerry explain` has
// it, with the smallest edit that would change the answer.

import { html, useLayoutEffect, useRef, useState } from "../ui.js";
import { address, Link, navigate } from "../router.js";
import { useAnswer } from "../live.js";
import { Failure, Loading } from "../notices.js";
import { Check } from "../marks.js";
import { isOfWorkload, manifestOf } from "../edits.js";
import { objectName } from "../format.js";

const MAX_PAIRS = 50;

/** Return how explain names an object: KIND/NAMESPACE/NAME. */
export function objectWord(object) {
  const kind = object.group ? `${object.resource}.${object.group}` : object.resource;
  return [kind, object.namespace, object.name].filter(Boolean).join("/");
}

/** The smallest edit, to be tried where it would be made: beside the placement, or in the inventory. */
function Edit({ link, home, inventory }) {
  if (!link.edit) return null;
  const manifest = manifestOf(link.edit);
  return html`<p class="edit">Smallest edit: <code><bdi>${link.edit}</bdi></code>${" "}
    ${manifest && html`<${Link} class="action" to=${address(["whatif"], { ws: isOfWorkload(link.edit) ? home : inventory, manifest })}>Try it<//>`}</p>`;
}

function Step({ link, home, inventory }) {
  return html`<li class="step step-${link.holds}"><${Check} value=${link.holds} /> <strong>${link.step}</strong>
    ${link.reason && html` <span class="reason">${link.reason}</span>`}
    ${(link.messages ?? []).map((message) => html`<div class="message"><bdi>${message}</bdi></div>`)}
    ${link.holds !== true && html`<${Edit} link=${link} home=${home} inventory=${inventory} />`}</li>`;
}

/** One object on its way to one Location. */
function Pair({ pair, home }) {
  return html`<article class="pair" aria-label="${objectName(pair.object)} to ${pair.location}"><h3><bdi>${objectName(pair.object)}</bdi> → <bdi>${pair.location}</bdi> <span class="quiet">${pair.outcome}</span></h3>
    <ol class="chain">${pair.links.map((link) => html`<${Step} key=${link.step} link=${link} home=${home} inventory=${pair.workspace} />`)}</ol></article>`;
}

/** A Location without any pair: it is not a destination, and no object was asked about. */
function NotChosen({ place, home }) {
  return html`<article class="pair"><h3><bdi>${place.location}</bdi> <span class="quiet">${place.destination ? "is a destination" : place.reason}</span></h3>
    ${(place.messages ?? []).map((message) => html`<div class="message"><bdi>${message}</bdi></div>`)}
    ${!place.destination && html`<${Edit} link=${place} home=${home} inventory=${place.workspace} />`}</article>`;
}

/** What keeps a whole Location out comes first; then object by object, as many as anybody reads. */
function Explained({ answer, home, object }) {
  const places = answer.locations.filter((place) => !answer.pairs.length || (!object && !place.destination));
  return html`
    ${places.map((place) => html`<${NotChosen} key=${place.workspace + place.location} place=${place} home=${home} />`)}
    ${answer.pairs.slice(0, MAX_PAIRS).map((pair, index) => html`<${Pair} key=${index} pair=${pair} home=${home} />`)}
    ${answer.pairs.length > MAX_PAIRS && html`<p class="quiet">and ${answer.pairs.length - MAX_PAIRS} more: choose an object.</p>`}`;
}

export function WhyNot({ ws, name, query, stages, rows }) {
  const edge = query.get("edge") ?? "";
  const object = query.get("object") ?? "";
  const [draft, setDraft] = useState({ edge, object });
  const answer = useAnswer("explain", edge || object ? { ws, name, edge, object } : null);
  const place = useRef(null);
  // Before the next key arrives: who types on at once types here.
  useLayoutEffect(() => {
    if (!edge && !object) place.current.focus();
  }, []);
  // To the placement's own address: that of one object would go on asking about the object.
  const asks = (words) => navigate(address(["placements", ws, name], { ...Object.fromEntries(query), ...words }));
  const submitted = (event) => {
    event.preventDefault();
    asks({ ...draft, explain: "yes" });
  };
  return html`<section class="whynot" aria-labelledby="why"><h2 id="why">Why not?</h2>
    <form class="toolbar" onSubmit=${submitted}>
      <label>object <select value=${draft.object} onChange=${(event) => setDraft({ ...draft, object: event.target.value })}><option value="">any it selects</option>
        ${stages.map((stage) => objectWord(stage.object)).map((word) => html`<option key=${word} value=${word} selected=${word === draft.object}>${word}</option>`)}
        ${draft.object && !stages.some((stage) => objectWord(stage.object) === draft.object) && html`<option value=${draft.object} selected>${draft.object}</option>`}</select></label>
      <label>Location <input ref=${place} list="known-edges" value=${draft.edge} placeholder="name, or WORKSPACE/NAME" autocomplete="off" onInput=${(event) => setDraft({ ...draft, edge: event.target.value })} /></label>
      <datalist id="known-edges">${rows.filter(Boolean).slice(0, 50).map((row) => html`<option key=${row.ws + row.name} value=${row.name}></option>`)}</datalist>
      <button type="submit" class="primary">Explain</button>
      <button type="button" onClick=${() => asks({ explain: "", edge: "", object: "" })}>Close</button>
    </form>
    ${answer.error && html`<${Failure} status=${answer.error} />`}
    ${answer.asking && !answer.data && html`<${Loading} what="the explanation" />`}
    ${answer.data && (edge || object) && html`<div data-answer="explain" aria-live="polite">
      <${Explained} answer=${answer.data} home=${ws} object=${object} />
      <details><summary>as JSON</summary><pre class="command" tabindex="0" aria-label="the answer as JSON" data-json="explain">${JSON.stringify(answer.data, null, 2)}</pre></details></div>`}
  </section>`;
}
