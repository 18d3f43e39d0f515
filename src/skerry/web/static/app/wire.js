// The wire of this tab, begun before anything else: this module needs no other, so the connection is
// being made while the rest of the page still comes. What the hub says meanwhile is kept in order.

const SUBPROTOCOL = "skerry.console.v1";

/** @typedef {{socket: WebSocket, said: string[]}} Wire */

/** Open a WebSocket to the hub of this page. @returns {Wire} */
export function dial() {
  const scheme = window.location.protocol === "http:" ? "ws:" : "wss:";
  const socket = new WebSocket(`${scheme}//${window.location.host}/console/socket`, SUBPROTOCOL);
  /** @type {Wire} */
  const wire = { socket, said: [] };
  socket.onmessage = (event) => wire.said.push(event.data);
  return wire;
}

/** The first connection; who signs in has none yet. @type {Wire|null} */
let first = window.location.pathname === "/console/login" ? null : dial();

/** Return the connection that was begun with the page, once. @returns {Wire|null} */
export function begun() {
  const wire = first;
  first = null;
  return wire;
}
