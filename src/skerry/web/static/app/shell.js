// What surrounds every view: landmarks, navigation, the filter box, the state of the connection.

import { html, useEffect, useLayoutEffect, useRef, useState } from "./ui.js";
import { Link, route, requery } from "./router.js";
import { connect, connection, end, hello } from "./socket.js";
import { signOut, comeBackHere } from "./session.js";
import { ConnectionBanner, Empty, Loading } from "./notices.js";
import { Announcements } from "./announce.js";
import { GlobalKeys, Help, helpOpen } from "./keys.js";
import { nextTheme, theme } from "./theme.js";
import { Palette } from "./palette.js";
import { Login } from "./views/login.js";
import { Fleet } from "./views/fleet.js";

/** Title, view and whether the filter box is about it. Views but the first (`here`) are fetched when asked for. */
const VIEWS = {
  fleet: { title: "Fleet", here: Fleet, filtered: true },
  placements: {
    title: "Placements",
    load: async () => (await import("./views/placements.js")).Placements,
    one: async () => (await import("./views/placement.js")).Placement,
    filtered: true,
  },
  edges: { title: "Edges", here: Fleet, one: async () => (await import("./views/edge.js")).Edge },
  whatif: { title: "What if", load: async () => (await import("./views/whatif.js")).WhatIf },
  rollouts: {
    title: "Rollouts",
    load: async () => (await import("./views/rollouts.js")).Rollouts,
    one: async () => (await import("./views/rollouts.js")).Rollout,
  },
  timeline: { title: "Timeline", load: async () => (await import("./views/timeline.js")).Timeline },
  queries: {
    title: "Queries",
    load: async () => (await import("./views/queries.js")).Queries,
    one: async () => (await import("./views/queries.js")).Query,
  },
  workspaces: { title: "Workspaces", load: async () => (await import("./views/workspaces.js")).Workspaces },
};
const NAVIGATION = ["fleet", "placements", "whatif", "rollouts", "timeline", "queries", "workspaces"];

function Missing() {
  return html`<h1>Not found</h1><${Empty} title="There is no such view">The address leads nowhere in this console. <${Link} to="/console/fleet">To the fleet<//>.<//>`;
}

/** The view of the present address, loaded once. */
function View() {
  const { view, rest } = route.value;
  const [loaded, setLoaded] = useState({ load: null, component: null });
  const one = rest.length > 1 && VIEWS[view]?.one;
  const here = one ? undefined : VIEWS[view]?.here;
  const load = one || VIEWS[view]?.load;
  useEffect(() => {
    let old = false;
    load?.().then((component) => old || setLoaded({ load, component }));
    return () => {
      old = true;
    };
  }, [load]);
  if (!load && !here) return html`<${Missing} />`;
  // A page has a heading from the first moment, the one that the view begins with.
  if (!here && loaded.load !== load) return html`<h1>${one ? html`<bdi>${rest[1]}</bdi>` : VIEWS[view].title}</h1><${Loading} what="the view" />`;
  return html`<${here ?? loaded.component} key=${view === "workspaces" ? view : [view, ...rest].join("/")} rest=${rest} query=${route.value.query} />`;
}

function Filter() {
  const box = useRef(null);
  const text = route.value.query.get("q") ?? "";
  useLayoutEffect(() => {
    if (document.activeElement !== box.current) box.current.value = text;
  }, [text]);
  return html`<form class="filter" role="search" onSubmit=${(event) => event.preventDefault()}>
    <label for="filter" class="unseen">Filter</label>
    <input id="filter" ref=${box} data-filter type="search" autocomplete="off" spellcheck=${false}
      placeholder="/ filter: env=prod status:away name" onInput=${(event) => requery({ q: event.target.value })} />
  </form>`;
}

function Connected() {
  const words = { live: "live", connecting: "connecting", lost: "disconnected", ended: "signed out", refused: "other version", moved: "other data" };
  return html`<span class="connection connection-${connection.value}"><span aria-hidden="true">${connection.value === "live" ? "●" : "○"}</span> ${words[connection.value]}</span>`;
}

function Header({ onPalette }) {
  const { view } = route.value;
  return html`<header class="top">
    <a class="skip" href="#main">Skip to content</a>
    <span class="brand">skerry</span><${Connected} />
    <nav aria-label="Views"><ul>${NAVIGATION.map((name) => html`<li key=${name}><${Link} to="/console/${name}" aria-current=${name === view ? "page" : undefined}>${VIEWS[name].title}<//></li>`)}</ul></nav>
    ${VIEWS[view]?.filtered && html`<${Filter} />`}
    <div class="tools">
      <button type="button" onClick=${onPalette} aria-label="Search everything" title="Search everything (Ctrl-K)">⌕</button>
      <button type="button" onClick=${() => (helpOpen.value = true)} aria-label="Keys" title="Keys (?)">?</button>
      <button type="button" onClick=${nextTheme} aria-label="Colours: ${theme.value}" title="Colours: ${theme.value}">◐</button>
      ${hello.value && html`<span class="user" title="signed in as"><bdi>${hello.value.user}</bdi></span>
        <button type="button" onClick=${() => signOut().then(() => { end(); window.location.assign("/console/login"); })}>Sign out</button>`}
    </div>
  </header>`;
}

/** Whom the page is for: nobody yet, somebody, or whoever signs in. */
function useSession() {
  const signingIn = route.value.view === "login";
  useLayoutEffect(() => {
    if (!signingIn) connect();
  }, [signingIn]);
  // The hub greets whom it knows. Who was never greeted has no session, and is not shown that one ended.
  const unknown = connection.value === "ended" && !hello.value;
  useEffect(() => {
    if (signingIn || !unknown) return;
    comeBackHere();
    window.location.replace("/console/login");
  }, [signingIn, unknown]);
  return hello.value;
}

export function Shell() {
  const who = useSession();
  const [palette, setPalette] = useState(false);
  const { view } = route.value;
  const signingIn = view === "login";
  // With the heading, not after the next paint: a tab must not be called after the view before.
  useLayoutEffect(() => {
    const subject = route.value.rest.slice(0, 2).join("/");
    document.title = [subject, signingIn ? "Sign in" : VIEWS[view]?.title ?? "Not found", "skerry"].filter(Boolean).join(" · ");
  }, [route.value]);
  if (signingIn) return html`<main id="main" class="alone"><${Login} /></main>`;
  if (!who && !["refused", "lost"].includes(connection.value)) return null;
  return html`
    <${Header} onPalette=${() => setPalette(true)} />
    <${ConnectionBanner} />
    <main id="main" tabindex="-1" class=${["live", "connecting"].includes(connection.value) ? "" : "offline"}><${View} /></main>
    <${Announcements} />
    <${GlobalKeys} onPalette=${() => setPalette(true)} />
    <${Help} />
    ${palette && html`<${Palette} onClose=${() => setPalette(false)} />`}`;
}
