// Every view has an address, and the address is the whole state of the view: what is shown after a
// reload, after Back, or by a link in a chat is what was shown before.

import { html, signal } from "./ui.js";

const BASE = "/console/";

/**
 * @typedef {object} Route
 * @property {string} view    first segment: fleet, placements, edges, …
 * @property {string[]} rest  the segments after it, decoded
 * @property {URLSearchParams} query
 */

/** @param {{pathname: string, search: string}} place @returns {Route} */
export function parsed(place) {
  const path = place.pathname.startsWith(BASE) ? place.pathname.slice(BASE.length) : "";
  const [view, ...rest] = path.split("/").filter(Boolean).map(decoded);
  return { view: view ?? "fleet", rest, query: new URLSearchParams(place.search) };
}

function decoded(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment; // not an escape: the segment as it stands
  }
}

/** Return the address of a view. @param {string[]} segments @param {Record<string, string|undefined>} [query] */
export function address(segments, query = {}) {
  const path = segments.map((segment) => encodeURIComponent(segment).replaceAll("%3A", ":")).join("/");
  const words = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  const search = words.toString();
  return BASE + path + (search ? `?${search}` : "");
}

/** @type {import("../vendor/signals.js").Signal<Route>} */
export const route = signal(parsed(window.location));

/** Go to *url*; *replace* is for what Back should not stop at, such as letters of a filter. */
export function navigate(url, { replace = false } = {}) {
  if (url === window.location.pathname + window.location.search) return;
  if (replace) window.history.replaceState(null, "", url);
  else window.history.pushState(null, "", url);
  route.value = parsed(window.location);
}

/** Change some words of the present address; an empty word goes. @param {Record<string, string>} words */
export function requery(words, options = { replace: true }) {
  const query = { ...Object.fromEntries(route.value.query), ...words };
  navigate(address([route.value.view, ...route.value.rest], query), options);
}

window.addEventListener("popstate", () => {
  route.value = parsed(window.location);
});

/** A link within the console; with a modifier it is the browser's. */
export function Link({ to, children, ...others }) {
  const follow = (event) => {
    if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(to);
  };
  return html`<a href=${to} onClick=${follow} ...${others}>${children}</a>`;
}
