// Polite announcements for who listens instead of looking. At most one in five seconds, the last one
// wins: a fleet changes faster than anybody can listen.

import { html, signal } from "./ui.js";

const PAUSE_MS = 5000;
const spoken = signal("");
let next = "";
let last = -PAUSE_MS;
let timer = 0;

/** Have *sentence* read out when the pause allows. @param {string} sentence */
export function announce(sentence) {
  next = sentence;
  if (timer) return;
  const wait = Math.max(0, last + PAUSE_MS - performance.now());
  timer = window.setTimeout(() => {
    timer = 0;
    last = performance.now();
    spoken.value = next;
  }, wait);
}

export function Announcements() {
  return html`<div class="unseen" role="status" aria-live="polite">${spoken.value}</div>`;
}
