// The tree of workspaces, as far as the viewer may list them. A branch is read when it is opened, so
// that a hub with ten thousand workspaces costs what is looked at.

import { html, useState } from "../ui.js";
import { address, Link } from "../router.js";
import { useAnswer } from "../live.js";
import { Failure, Loading } from "../notices.js";

const ROOT = { path: "root", name: "root", type: "", phase: "Ready" };

function Children({ path, chosen }) {
  const { data, error } = useAnswer("children", { ws: path });
  if (error && !data) return html`<${Failure} status=${error} />`;
  if (!data) return html`<${Loading} what="workspaces" />`;
  if (!data.children.length) return html`<p class="quiet">nothing below</p>`;
  return html`<ul>${data.children.map((child) => html`<${Branch} key=${child.path} node=${child} chosen=${chosen} />`)}</ul>`;
}

function Branch({ node, chosen }) {
  const leads = chosen === node.path || chosen.startsWith(`${node.path}:`);
  const [open, setOpen] = useState(leads || node.path === ROOT.path);
  return html`<li>
    <button type="button" class="twig" aria-expanded=${open} aria-label="below ${node.path}" onClick=${() => setOpen(!open)}>${open ? "▾" : "▸"}</button>
    <span class=${node.path === chosen ? "chosen" : ""}><${Link} to=${address(["workspaces", node.path])} aria-current=${node.path === chosen ? "true" : undefined}><bdi>${node.name}</bdi><//></span>
    ${node.type && html` <span class="quiet"><bdi>${node.type}</bdi></span>`}${node.phase !== "Ready" && html` <span class="quiet">${node.phase}</span>`}
    ${open && html`<${Children} path=${node.path} chosen=${chosen} />`}</li>`;
}

function Chosen({ path }) {
  return html`<section aria-labelledby="chosen"><h2 id="chosen"><bdi>${path}</bdi></h2><ul class="listed">
    <li><${Link} to=${address(["placements"], { q: path })}>placements in it<//></li>
    <li><${Link} to=${address(["rollouts"], { ws: path })}>rollouts in it<//></li>
    <li><${Link} to=${address(["queries"], { ws: path })}>queries in it<//></li>
    <li><${Link} to=${address(["whatif"], { ws: path })}>try an edit here<//></li></ul>
    <pre class="command" tabindex="0" aria-label="command"><code>kubectl ws ${path}</code></pre></section>`;
}

export function Workspaces({ rest }) {
  const chosen = rest[0] ?? "";
  return html`<h1>Workspaces</h1><div class="two">
    <nav aria-label="Tree of workspaces"><ul class="tree"><${Branch} node=${ROOT} chosen=${chosen} /></ul></nav>
    ${chosen && html`<${Chosen} path=${chosen} />`}</div>`;
}
