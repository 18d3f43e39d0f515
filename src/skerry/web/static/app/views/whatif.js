// What would this do? An edit beside a ghost map of what it would gain, lose and change. Nothing is
// written until somebody applies it, and then only at the revision that was previewed.

import { html, useEffect, useMemo, useState } from "../ui.js";
import { address, navigate, requery } from "../router.js";
import { ask, connection } from "../socket.js";
import { announce } from "../announce.js";
import { Failure } from "../notices.js";
import { Dialog } from "../dialog.js";
import { EdgeMap } from "../map.js";
import { EFFECTS } from "../states.js";
import { count, counted, objectName } from "../format.js";
import { UNNAMED } from "./fleet.js";

// A manifest in the address makes the view a link; longer ones stay in this tab.
const MAX_SHARED = 4000;

/** Return the part of a revision that says something to people; the rest is a digest. */
const shortRevision = (answer) => String(answer.revision).split("-")[0];

/** Return the edges that an edit reaches: gained first, then lost, then changed. */
export function effectsOf(answer) {
  const found = (answer.edges ?? []).map((each) => ({ ...each, effect: EFFECTS.findIndex(({ key }) => key === each.effect) }));
  return found.sort((one, other) => one.effect - other.effect || one.workspace.localeCompare(other.workspace) || one.name.localeCompare(other.name));
}

/** The ghost map: of whom the edit is about. */
function Ghost({ effects }) {
  const cells = useMemo(() => Uint8Array.from(effects, (each) => each.effect), [effects]);
  const lookup = async (index) => ({ ws: effects[index].workspace, name: effects[index].name });
  const open = ({ workspace, name }) => workspace !== UNNAMED && navigate(address(["edges", workspace, name]));
  return html`<${EdgeMap} title="Ghost map" groups=${[{ value: "edges this is about", count: effects.length }]} cells=${cells} by="" palette=${EFFECTS} lookup=${lookup} onPick=${(index) => open(effects[index])} />`;
}

function Totals({ effects }) {
  const totals = [1, 2, 3].map((effect) => effects.filter((each) => each.effect === effect).length);
  return html`<ul class="totals" data-totals>${[["gained", "+", totals[0]], ["lost", "−", totals[1]], ["changed", "◆", totals[2]]].map(([word, sign, value]) =>
    html`<li key=${word} class="effect-${word}"><span aria-hidden="true">${sign}</span> <strong>${count(value)}</strong> ${value === 1 ? "edge" : "edges"} ${word}</li>`)}</ul>`;
}

function Changes({ placement }) {
  const { destinations, objects } = placement;
  const listed = (title, entries) => entries.length > 0 && html`<details><summary>${title} ${count(entries.length)}</summary><ul>${entries.slice(0, 200).map((each, index) => html`<li key=${index}><bdi>${each.location ?? objectName(each)}</bdi></li>`)}</ul></details>`;
  return html`<article class="pair"><h3><bdi>${placement.placement}</bdi> <span class="quiet"><bdi>${placement.workspace}</bdi></span></h3>
    ${listed("gained edges:", destinations.added)}${listed("lost edges:", destinations.removed)}${listed("held edges:", destinations.held ?? [])}
    ${listed("objects gained:", objects.added)}${listed("objects lost:", objects.removed)}
    ${objects.changed.map((change, index) => html`<div key=${index} class="change"><strong><bdi>${objectName(change.object)}</bdi></strong> changes at ${counted(change.destinations.length, "edge")}
      <ul class="fields">${change.fields.map((field, at) => html`<li key=${at}><code><bdi>${typeof field === "string" ? field : JSON.stringify(field)}</bdi></code></li>`)}</ul></div>`)}
    ${(objects.withheld ?? []).map((each, index) => html`<p key=${index} class="problem"><bdi>${objectName(each.object)}</bdi> would be withheld: ${each.reason}: <bdi>${each.message}</bdi></p>`)}</article>`;
}

function Answer({ answer, effects }) {
  const nothing = !(answer.placements ?? []).length && !(answer.created ?? []).length;
  return html`<div data-answer="whatif">
    <${Totals} effects=${effects} />
    ${nothing && html`<p>Nothing would change.</p>`}
    ${(answer.created ?? []).length > 0 && html`<p>New: ${answer.created.map((name, index) => html`<bdi key=${index}>${index ? ", " : ""}${name}</bdi>`)}</p>`}
    ${effects.length > 0 && html`<${Ghost} effects=${effects} />`}
    ${(answer.held ?? []).map((each, index) => html`<p key=${index} class="problem">the removals of <bdi>${each.placement}</bdi> would be held: <bdi>${each.why}</bdi></p>`)}
    ${(answer.placements ?? []).map((placement, index) => html`<${Changes} key=${index} placement=${placement} />`)}
    <details><summary>as JSON</summary><pre class="command" tabindex="0" aria-label="the answer as JSON" data-json="whatif">${JSON.stringify(answer, null, 2)}</pre></details></div>`;
}

export function WhatIf({ query }) {
  const shared = query.get("manifest") ?? "";
  const [ws, setWs] = useState(query.get("ws") ?? "");
  const [text, setText] = useState(shared);
  const [previewed, setPreviewed] = useState(null);
  const [error, setError] = useState(null);
  const [confirming, setConfirming] = useState(false);
  const [applied, setApplied] = useState("");
  const [busy, setBusy] = useState(false);
  const effects = useMemo(() => (previewed ? effectsOf(previewed.answer) : []), [previewed]);
  const live = connection.value === "live";
  const current = previewed && previewed.ws === ws && previewed.text === text;
  const preview = async () => {
    setBusy(true);
    setError(null);
    setApplied("");
    try {
      const answer = await ask("whatif", { ws, manifest: text });
      setPreviewed({ answer, ws, text });
      requery({ ws, manifest: text.length <= MAX_SHARED ? text : "" });
      announce(`previewed: ${counted(effectsOf(answer).length, "edge")} affected`);
    } catch (problem) {
      setPreviewed(null);
      setError(problem.status ?? { message: String(problem) });
    }
    setBusy(false);
  };
  const apply = async () => {
    setConfirming(false);
    setBusy(true);
    try {
      await ask("apply", { ws, manifest: text, revision: previewed.answer.revision });
      setApplied(`applied in ${ws}`);
      announce(`applied in ${ws}`);
      setPreviewed(null);
    } catch (problem) {
      setError(problem.status ?? { message: String(problem) });
    }
    setBusy(false);
  };
  // The keys that every editor has for "do it".
  const pressed = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) preview();
  };
  useEffect(() => {
    if (shared && ws && live) preview();
  }, [live]);
  return html`<h1>What if</h1><div class="two">
    <section aria-label="Edit"><form class="editor" onSubmit=${(event) => { event.preventDefault(); preview(); }}>
      <label for="ws">Workspace</label><input id="ws" value=${ws} required placeholder="root:shop" autocomplete="off" spellcheck=${false} onInput=${(event) => setWs(event.target.value.trim())} />
      <label for="manifest">Objects, as YAML or JSON</label>
      <textarea id="manifest" rows="18" required spellcheck=${false} value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${pressed}></textarea>
      <p class="quiet">One with metadata alone changes labels of an object that exists. Ctrl-Enter previews; nothing is written by that.</p>
      <div class="actions"><button type="submit" class="primary" disabled=${!live || busy || !text || !ws}>Preview</button>${" "}
        <button type="button" disabled=${!live || busy || !current} onClick=${() => setConfirming(true)}>Apply to ${counted(effects.length, "edge")}…</button>${" "}
        ${current && html`<span class="quiet">revision ${shortRevision(previewed.answer)}</span>`}</div></form></section>
    <section aria-label="Effect" aria-busy=${busy}>
      ${error && html`<${Failure} status=${error} onRetry=${preview} />`}
      ${applied && html`<p role="status" class="applied">✓ ${applied}</p>`}
      ${previewed && html`${!current && html`<p class="problem" role="status">The edit has changed since it was previewed.</p>`}<${Answer} answer=${previewed.answer} effects=${effects} />`}
      ${!previewed && !error && !applied && html`<p class="quiet">Preview an edit to see whom it reaches.</p>`}</section></div>
    ${confirming && html`<${Dialog} title="Apply to ${counted(effects.length, "edge")}?" onClose=${() => setConfirming(false)}>
      <${Totals} effects=${effects} /><p>It is applied in <bdi>${ws}</bdi> only if nothing there has changed since revision ${shortRevision(previewed.answer)}.</p>
      <p class="actions"><button type="button" class="primary" onClick=${apply}>Apply</button> <button type="button" onClick=${() => setConfirming(false)}>Cancel</button></p><//>`}`;
}
