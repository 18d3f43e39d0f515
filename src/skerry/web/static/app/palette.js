// Search over everything the viewer may see: edges, placements, workspaces, rollouts, queries.

import { html, useEffect, useLayoutEffect, useRef, useState } from "./ui.js";
import { Dialog } from "./dialog.js";
import { navigate, address } from "./router.js";
import { useAnswer } from "./live.js";

const VIEW_OF = { edge: "edges", placement: "placements", rollout: "rollouts", query: "queries" };

/** Return the address of something that was found; a workspace is found in the one above it. */
export function addressOf(found) {
  if (found.kind === "workspace") return address(["workspaces", `${found.ws}:${found.name}`]);
  return address([VIEW_OF[found.kind] ?? "fleet", found.ws, found.name].filter(Boolean));
}

export function Palette({ onClose }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const input = useRef(null);
  const entered = useRef(false);
  const { data, error, asking } = useAnswer("search", text.trim() ? { q: text.trim() } : null);
  const found = text.trim() ? data?.results ?? [] : [];
  useLayoutEffect(() => input.current?.focus(), []);
  useEffect(() => setAt(0), [text]);
  useEffect(() => {
    // Who was faster than the answer meant the first of it.
    if (entered.current && !asking && found.length) open(found[0]);
  }, [asking, data]);
  const open = (result) => {
    onClose();
    navigate(addressOf(result));
  };
  const pressed = (event) => {
    if (event.key === "ArrowDown") setAt(Math.min(found.length - 1, at + 1));
    else if (event.key === "ArrowUp") setAt(Math.max(0, at - 1));
    else if (event.key === "Enter" && !asking && found[at]) open(found[at]);
    else if (event.key === "Enter") entered.current = true;
    else return;
    event.preventDefault();
  };
  return html`<${Dialog} title="Search everything" onClose=${onClose}>
    <input ref=${input} class="palette-input" type="search" role="combobox" aria-label="Search" aria-expanded=${found.length > 0} aria-controls="found" autocomplete="off"
      aria-activedescendant=${found[at] ? `found-${at}` : undefined} onInput=${(event) => { entered.current = false; setText(event.target.value); }} onKeyDown=${pressed} />
    ${error && html`<p role="alert">${error.message}</p>`}
    <ul id="found" role="listbox" aria-label="Found">
      ${found.map((result, index) => html`<li key=${`${result.kind} ${result.ws} ${result.name}`} id="found-${index}" role="option" aria-selected=${index === at} onClick=${() => open(result)}>
        <span class="quiet">${result.kind}</span> <bdi>${result.name}</bdi> <span class="quiet"><bdi>${result.ws}</bdi></span></li>`)}
    </ul>
    ${text.trim() && data && !found.length && html`<p role="status">Nothing that you may see has <q>${text}</q> in its name.</p>`}
  <//>`;
}
