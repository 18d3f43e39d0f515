// Keys. One table says what each does; the help is made of it, so they cannot differ. No single key
// deletes or changes anything. Who wants others sets them in the help; they stay in this browser.

import { html, signal, useLayoutEffect, useRef } from "./ui.js";
import { navigate } from "./router.js";
import { Dialog } from "./dialog.js";

const STORED = "skerry.keys";

/** @type {Map<string, {keys: string, title: string, run: () => void}>} */
const actions = new Map();
export const helpOpen = signal(false);
let prefix = "";

/** Return the keys people chose, by action. */
function chosen() {
  try {
    return Object(JSON.parse(window.localStorage.getItem(STORED) ?? "{}"));
  } catch {
    return {}; // somebody else's text under our name: the defaults hold
  }
}
let own = chosen();

/** Offer an action while a component is shown, from the moment in which it can be seen. */
export function useKey(name, keys, title, run) {
  const latest = useRef(run);
  latest.current = run;
  useLayoutEffect(() => {
    const action = { keys: own[name] ?? keys, title, run: () => latest.current() };
    actions.set(name, action);
    return () => {
      if (actions.get(name) === action) actions.delete(name);
    };
  }, [name, keys]);
}

function typing(target) {
  return target.closest?.("input, textarea, select, [contenteditable]") !== null;
}

function spelled(event) {
  return (event.ctrlKey || event.metaKey ? "Ctrl-" : "") + (event.key.length === 1 ? event.key.toLowerCase() : event.key);
}

function pressed(event) {
  if (event.defaultPrevented || event.altKey || ["Control", "Shift", "Meta"].includes(event.key)) return;
  const key = spelled(event);
  const inDialog = document.querySelector("dialog[open]") !== null;
  if (typing(event.target) && !key.startsWith("Ctrl-")) {
    if (key === "Escape") event.target.blur();
    return;
  }
  if (inDialog) return;
  const wanted = prefix ? `${prefix} ${key}` : key;
  prefix = "";
  for (const { keys, run } of actions.values()) {
    if (keys === wanted) {
      event.preventDefault();
      run();
      return;
    }
    if (keys.startsWith(`${wanted} `)) prefix = wanted;
  }
}
window.addEventListener("keydown", pressed);

/** Move the focus among the links of the list that is shown. @param {number} step */
export function moveRow(step) {
  const rows = [...document.querySelectorAll("main .item a, main .listed a, main tbody a")];
  const at = rows.indexOf(/** @type {any} */ (document.activeElement));
  const next = rows[at < 0 ? 0 : Math.max(0, Math.min(rows.length - 1, at + step))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

/** The keys that work in every view. */
export function GlobalKeys({ onPalette }) {
  useKey("filter", "/", "Filter", () => document.querySelector("[data-filter]")?.focus());
  useKey("palette", "Ctrl-k", "Search everything", onPalette);
  useKey("help", "?", "These keys", () => (helpOpen.value = true));
  useKey("fleet", "g f", "Go to the fleet", () => navigate("/console/fleet"));
  useKey("placements", "g p", "Go to placements", () => navigate("/console/placements"));
  useKey("edges", "g e", "Go to the list of edges", () => document.querySelector(".rows .scroll")?.focus() ?? navigate("/console/fleet"));
  useKey("timeline", "g t", "Go to the timeline", () => navigate("/console/timeline"));
  useKey("whatif", "g w", "Go to what if", () => navigate("/console/whatif"));
  useKey("rollouts", "g r", "Go to rollouts", () => navigate("/console/rollouts"));
  useKey("queries", "g q", "Go to queries", () => navigate("/console/queries"));
  useKey("tree", "g s", "Go to workspaces", () => navigate("/console/workspaces"));
  useKey("down", "j", "Next row", () => moveRow(1));
  useKey("up", "k", "Previous row", () => moveRow(-1));
  useKey("back", "u", "Up: back to where you came from", () => window.history.back());
  return null;
}

function rebind(name, event) {
  const keys = event.target.value.trim();
  own = { ...own, [name]: keys || undefined };
  window.localStorage.setItem(STORED, JSON.stringify(own));
  const action = actions.get(name);
  if (action && keys) action.keys = keys;
}

export function Help() {
  if (!helpOpen.value) return null;
  return html`<${Dialog} title="Keys" onClose=${() => (helpOpen.value = false)}>
    <p>Enter opens what has the focus. Write other keys here; they stay in this browser.</p>
    <table class="keys"><thead><tr><th scope="col">Key</th><th scope="col">Does</th></tr></thead><tbody>
      ${[...actions].map(([name, { keys, title }]) => html`<tr key=${name}><td><input class="key" aria-label="key for: ${title}" value=${keys} maxlength="12" onChange=${(event) => rebind(name, event)} /></td><td>${title}</td></tr>`)}
    </tbody></table>
  <//>`;
}
