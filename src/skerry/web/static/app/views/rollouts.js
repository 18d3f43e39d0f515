// Rollouts: who waits for whom, wave by wave, and the steps a person may take.

import { html, useState } from "../ui.js";
import { address, Link } from "../router.js";
import { ask, connection } from "../socket.js";
import { useLive } from "../live.js";
import { Empty, Failure, Loading } from "../notices.js";
import { Dialog } from "../dialog.js";
import { Bar } from "../marks.js";
import { Conditions } from "../conditions.js";
import { age, count } from "../format.js";

const VERBS = [
  ["approve", "Approve", "lets the wave that waits for a person open"],
  ["pause", "Pause", "opens no further wave until it is resumed"],
  ["resume", "Resume", "goes on; what is bad by now is accepted"],
  ["promote", "Promote", "lets the present wave pass without waiting"],
  ["abort", "Abort", "gives the target up: every edge returns to the stable revision"],
  ["undo", "Undo", "rolls the stable revision out until a newer one is cut"],
];

export function Rollouts({ query }) {
  const live = useLive("rollouts", { ws: query.get("ws") ?? "" });
  const { data, error } = live;
  if (error && !data) return html`<h1>Rollouts</h1><${Failure} status=${error} onRetry=${live.retry} />`;
  if (!data) return html`<h1>Rollouts</h1><${Loading} what="rollouts" />`;
  const rows = data.objects;
  if (!rows.length) return html`<h1>Rollouts</h1><${Empty} title="No rollouts yet" command="kubectl explain rollout.spec">A Rollout paces how a placement's changes reach its edges: a canary first, then waves.<//>`;
  return html`<h1>Rollouts</h1><div class="wide" tabindex="0" role="region" aria-label="Rollouts"><table>
    <thead><tr><th scope="col">Rollout</th><th scope="col">Workspace</th><th scope="col">Phase</th><th scope="col">Wave</th><th scope="col" class="number">At target</th><th scope="col">Progress</th></tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${row.ws + row.name}><th scope="row"><${Link} to=${address(["rollouts", row.ws, row.name])}><bdi>${row.name}</bdi><//></th><td><bdi>${row.ws}</bdi></td><td>${row.phase}</td><td><bdi>${row.wave ?? ""}</bdi></td>
      <td class="number">${count(row.counts?.target)} of ${count(row.counts?.destinations)}</td><td><${Bar} part=${row.counts?.target ?? 0} whole=${row.counts?.destinations ?? 0} /></td></tr>`)}</tbody></table></div>`;
}

const WAVE_SHAPES = { passed: "✓", open: "↻", ahead: "·" };

/** What a wave asks for before the next may open. */
function gatesOf(wave) {
  return [wave.approval ? "a person approves" : "", wave.soakSeconds ? `quiet for ${age(wave.soakSeconds)}` : ""].filter(Boolean).join(", ");
}

/** One wave as a bar: good, bad and waiting parts of whom it holds. A wave holds those before it, too. */
function WaveBar({ wave }) {
  const parts = wave.state === "open" ? [["good", wave.good], ["bad", wave.bad], ["waiting", wave.waiting]] : [[wave.state, 1]];
  const whole = Math.max(1, parts.reduce((sum, [, part]) => sum + part, 0));
  let at = 0;
  return html`<svg class="wave-bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" focusable="false">
    <rect class="wave-back" x="0" y="0" width="100" height="10" />
    ${parts.map(([word, part]) => {
      const x = at;
      at += (part / whole) * 100;
      return html`<rect key=${word} class="wave-${word}" x=${x} y="0" width=${(part / whole) * 100} height="10" />`;
    })}</svg>`;
}

/** The waves in the order they open, as the hub has them. */
function Waves({ waves }) {
  if (!waves?.length) return null;
  return html`<section aria-labelledby="waves"><h2 id="waves">Waves</h2><ol class="waves">${waves.map((wave, index) => html`<li key=${index} class="wave-is-${wave.state}" aria-current=${wave.state === "open" ? "step" : undefined}>
    <span class="wave-name"><span aria-hidden="true">${WAVE_SHAPES[wave.state]}</span> <bdi>${wave.name || (waves.length === 1 ? "everybody at once" : "everybody left")}</bdi></span><${WaveBar} wave=${wave} />
    <span class="wave-words">${wave.state === "open" ? `${count(wave.good)} good, ${count(wave.bad)} bad, ${count(wave.waiting)} waiting of ${count(wave.size)}` : `${wave.state}, ${wave.until === "everybody" ? "everybody it selects" : `until ${wave.until}`}`}${gatesOf(wave) ? html` <span class="quiet">· ${gatesOf(wave)}</span>` : ""}</span></li>`)}</ol></section>`;
}

/** What a person may do; each step is of the revision and wave that were shown when it was chosen. */
function Steps({ ws, name, target, wave }) {
  const [chosen, setChosen] = useState(null);
  const [error, setError] = useState(null);
  const [done, setDone] = useState("");
  const act = async () => {
    const { verb, ...seen } = chosen;
    setChosen(null);
    setDone("");
    setError(null);
    try {
      const { message } = await ask("act", { verb: verb[0], ws, name, ...seen });
      setDone(message);
    } catch (problem) {
      setError(problem.status);
    }
  };
  return html`<div class="actions">${VERBS.map((each) => html`<button key=${each[0]} type="button" disabled=${connection.value !== "live"} onClick=${() => setChosen({ verb: each, target, wave })}>${each[1]}…</button>`)}</div>
    ${error && html`<${Failure} status=${error} />`}
    ${done && html`<p role="status" class="applied">✓ ${done}</p>`}
    ${chosen && html`<${Dialog} title="${chosen.verb[1]} ${name}?" onClose=${() => setChosen(null)}><p>It ${chosen.verb[2]}. ${chosen.target ? html`Shown was revision ${chosen.target}${chosen.wave ? html`, wave <bdi>${chosen.wave}</bdi>` : ""}; should it have moved on, nothing is done.` : ""}</p>
      <p class="actions"><button type="button" class="primary" onClick=${act}>${chosen.verb[1]}</button> <button type="button" onClick=${() => setChosen(null)}>Cancel</button></p><//>`}`;
}

export function Rollout({ rest }) {
  const [ws, name] = rest;
  const live = useLive("rollout", { ws, name });
  const { data, error } = live;
  if (error && !data) return html`<h1><bdi>${name}</bdi></h1><${Failure} status=${error} onRetry=${live.retry} />`;
  if (!data) return html`<h1><bdi>${name}</bdi></h1><${Loading} what="the rollout" />`;
  const { counts, failure } = data;
  return html`<h1>Rollout <bdi>${name}</bdi> <span class="quiet"><bdi>${ws}</bdi></span></h1>
    <p class="lead"><strong>${data.phase || "Nobody has looked at it yet"}</strong>${data.paused ? " (paused)" : ""}${data.target ? ` · revision ${data.target}` : ""}${data.stable && data.stable !== data.target ? ` (stable: ${data.stable})` : ""}
      ${data.wave ? html` · wave <bdi>${data.wave}</bdi>` : ""}</p>
    <p class="lead"><${Bar} part=${counts.target ?? 0} whole=${counts.destinations ?? 0} /> ${count(counts.target)} of ${count(counts.destinations)} edges at the target; ${count(counts.good)} good, ${count(counts.bad)} bad, ${count(counts.waiting)} waiting</p>
    ${failure && html`<p class="problem">revision ${failure.revision} failed: ${failure.reason}: <bdi>${failure.message}</bdi></p>`}
    <${Steps} ws=${ws} name=${name} target=${data.target} wave=${data.wave} />
    <${Waves} waves=${data.waves} />
    <section aria-labelledby="conditions"><h2 id="conditions">Conditions</h2><${Conditions} conditions=${data.conditions} /></section>`;
}
