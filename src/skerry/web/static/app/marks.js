// A state as people see it: shape, colour and word together.

import { html, signal } from "./ui.js";
import { stateOf } from "./states.js";
import { age, count, instant } from "./format.js";

/** The present, by the second; only ages read it, so only their text is drawn again. */
export const now = signal(Date.now());
window.setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);

/** Shape and word; *bare* leaves the word to readers, where a column already has it. */
export function Mark({ state, bare = false }) {
  const known = stateOf(state);
  return html`<span class="mark mark-${known.key}"
    ><span class="shape" aria-hidden="true">${known.shape}</span
    ><span class=${bare ? "unseen" : "word"}>${known.word}</span></span>`;
}

/** How long ago something was; the instant itself is in the title. */
export function Age({ since }) {
  const then = instant(since);
  if (Number.isNaN(then)) return html`<span class="age">never</span>`;
  const iso = new Date(then).toISOString();
  return html`<time class="age" datetime=${iso} title=${iso}>${age((now.value - then) / 1000)}</time>`;
}

/** A part of a whole as a bar, with the numbers in words. */
export function Bar({ part, whole, state = "healthy" }) {
  return html`<meter class="bar bar-${state}" min="0" max=${Math.max(1, whole)} value=${part}
    aria-label="${count(part)} of ${count(whole)}"></meter>`;
}

/** ✓, ✗ or … with the word that it stands for; the colour says whether that is good. */
export function Check({ value, adverse = false }) {
  const known = { True: ["✓", "yes"], False: ["✗", "no"] }[String(value)[0]?.toUpperCase() + String(value).slice(1)] ?? ["…", "unknown"];
  return html`<span class="check check-${lookOf(known[1], adverse)}"><span aria-hidden="true">${known[0]}</span><span class="unseen">${known[1]}</span></span>`;
}

/** How an answer looks: like the other one, where yes is the bad one. */
export function lookOf(answer, adverse) {
  return (adverse && { yes: "no", no: "yes" }[answer]) || answer;
}
