// Conditions as Kubernetes writes them, and labels, as tables of words.

import { html } from "./ui.js";
import { Check } from "./marks.js";

// Of these, True is what is wrong.
const ADVERSE = new Set(["Held", "Stalled"]);

export function Conditions({ conditions }) {
  if (!conditions?.length) return html`<p class="quiet">No conditions yet.</p>`;
  return html`<div class="wide" tabindex="0" role="region" aria-label="Table of conditions"><table><thead><tr><th scope="col">Condition</th><th scope="col">Holds</th><th scope="col">Reason</th><th scope="col">Message</th></tr></thead>
    <tbody>${conditions.map((each) => html`<tr key=${each.type}><th scope="row">${each.type}</th><td><${Check} value=${each.status} adverse=${ADVERSE.has(each.type)} /></td><td>${each.reason}</td><td><bdi>${each.message}</bdi></td></tr>`)}</tbody></table></div>`;
}

export function Labels({ labels }) {
  const pairs = Object.entries(labels ?? {});
  if (!pairs.length) return html`<span class="quiet">none</span>`;
  return html`<ul class="labels">${pairs.map(([key, value]) => html`<li key=${key}><bdi>${key}=${value}</bdi></li>`)}</ul>`;
}
