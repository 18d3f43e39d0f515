// The fleet at a moment: which one, how to move it, and what nobody knows of it.

import { html } from "./ui.js";
import { requery } from "./router.js";
import { useKey } from "./keys.js";
import { clockTime, count, instant, localInput, momentWord } from "./format.js";

const STEP_MS = 60_000;

/** Show the fleet at *moment*; whatever is not over yet is the present. @param {number} moment */
function seek(moment) {
  requery({ at: moment < Date.now() ? momentWord(moment) : "" }, { replace: false });
}

/** What moves through time: keys in every fleet, and in the present a button that begins. */
export function useTime(at) {
  const moment = () => (at ? instant(at) : Date.now());
  useKey("earlier", "[", "Earlier", () => seek(moment() - STEP_MS));
  useKey("later", "]", "Later", () => at && seek(moment() + STEP_MS));
  return () => seek(moment() - STEP_MS);
}

/** The moment that is shown, and what is known of it. */
export function Past({ at, data }) {
  const moment = instant(at);
  const chosen = (event) => event.target.value && seek(new Date(event.target.value).getTime());
  const gone = data?.gone?.count ?? 0;
  const untold = data?.untold ?? [];
  return html`<section class="past" aria-label="The past">
    <div class="actions"><strong>As it was at ${clockTime(at) || at}</strong>
      <button type="button" onClick=${() => seek(moment - STEP_MS)}>◀ a minute</button>
      <button type="button" onClick=${() => seek(moment + STEP_MS)}>a minute ▶</button>
      ${!Number.isNaN(moment) && html`<label class="by">at <input type="datetime-local" step="1" value=${localInput(moment)} onChange=${chosen} /></label>`}
      <button type="button" class="primary" onClick=${() => requery({ at: "" }, { replace: false })}>Live</button></div>
    <p class="quiet">From what was decided and judged. Heartbeats of then are not kept; labels are those of now.</p>
    ${gone > 0 && html`<p>${count(gone)} that placements led to then ${gone === 1 ? "is" : "are"} here no more: ${data.gone.names.map((name, index) => html`<bdi key=${index}>${index ? ", " : ""}${name}</bdi>`)}${gone > data.gone.names.length ? ", …" : ""}</p>`}
    ${untold.map(({ placement, why }) => html`<p key=${placement} class="problem"><bdi>${placement}</bdi>: <bdi>${why}</bdi></p>`)}
  </section>`;
}
