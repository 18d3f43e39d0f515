// The wire of this tab, begun before anything else: this module needs no other, so the connection is
// being made while the rest of the page still comes, and the fleet is asked for by whoever opens it.
// What the hub says meanwhile is kept in order.

const SUBPROTOCOL = "skerry.console.v1";
/** The subscription that is made with the page, if any; later ones have greater numbers. */
export const FIRST = 1;
/** Rows that are asked for before anybody knows how many fit. */
export const FIRST_ROWS = [0, 40];

/** @typedef {{kind: string, view: object}} Asked */
/** @typedef {{socket: WebSocket, said: string[], asked: Asked|null}} Wire */

/** Return the filter with the state that the address names beside it. @param {URLSearchParams} query */
export function filterOf(query) {
  const status = query.get("status");
  return [query.get("q") ?? "", status ? `status:${status}` : ""].filter(Boolean).join(" ");
}

/** Return what the fleet's view asks the hub for. @param {URLSearchParams} query @param {number[]} rows */
export function fleetView(query, rows) {
  const at = query.get("at");
  return { q: filterOf(query), by: query.get("by") ?? "", rows, ...(at ? { at } : {}) };
}

/** Open a WebSocket to the hub of this page. @param {Asked|null} [asked] @returns {Wire} */
export function dial(asked = null) {
  const scheme = window.location.protocol === "http:" ? "ws:" : "wss:";
  const socket = new WebSocket(`${scheme}//${window.location.host}/console/socket`, SUBPROTOCOL);
  /** @type {Wire} */
  const wire = { socket, said: [], asked };
  socket.onmessage = (event) => wire.said.push(event.data);
  if (asked) socket.onopen = () => socket.send(JSON.stringify({ id: FIRST, sub: asked.kind, view: asked.view }));
  return wire;
}

/** Return what the page at *place* will ask for first, where that is known by its address alone. */
function asked(place) {
  const query = new URLSearchParams(place.search);
  return place.pathname === "/console/fleet" ? { kind: "fleet", view: fleetView(query, FIRST_ROWS) } : null;
}

/** The first connection; who signs in has none yet. @type {Wire|null} */
let first = window.location.pathname === "/console/login" ? null : dial(asked(window.location));

/** Return the connection that was begun with the page, once. @returns {Wire|null} */
export function begun() {
  const wire = first;
  first = null;
  return wire;
}
