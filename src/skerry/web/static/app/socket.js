// The one connection of this tab. It carries every subscription and every question; it comes back by
// itself with growing pauses, and stops at once where the hub says that the session ended: a tab that
// asks on with a dead session is how consoles flood their servers.

import { signal } from "./ui.js";
import { begun, dial, FIRST } from "./wire.js";

const PROTOCOL = 1;
const MIN_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 60_000;
// A question nobody answered in this time has failed; the slowest honest answer is a what-if.
const ANSWER_MS = 30_000;

/** connecting: first try; live; lost: will retry; ended: the session is over; refused: other protocol; moved: other data. */
export const connection = signal("connecting");
/** When the hub last said anything, in milliseconds of this machine. */
export const heardAt = signal(Date.now());
/** When the next attempt is made, while lost. */
export const retryAt = signal(0);
/** What the hub said of itself and of the viewer. */
export const hello = signal(null);

/** @typedef {{kind: string, view: object, receive: (frame: object) => void}} Subscription */

/** @type {Map<number, Subscription>} */
const subscriptions = new Map();
/** @type {Map<number, {resolve: Function, reject: Function, timer: number}>} */
const questions = new Map();
/** Programs that run in terminals of this tab. @type {Map<number, (frame: any) => void>} */
const programs = new Map();
let lastId = FIRST;
/** What was asked for with the page, and what the hub answered before anybody took it over. */
let early = null;
let attempts = 0;
/** @type {WebSocket|null} */
let socket = null;
let timer = 0;

/** Raised for a Status the hub answered with. */
export class HubError extends Error {
  /** @param {{message?: string, reason?: string, code?: number, details?: object}} status */
  constructor(status) {
    super(status.message || status.reason || "the hub refused the request");
    this.status = status;
  }
}

/** Open the connection; further calls while there is one do nothing. */
export function connect() {
  if (socket) return;
  window.clearTimeout(timer);
  const { socket: opened, said, asked } = begun() ?? dial();
  socket = opened;
  early = asked && { ...asked, text: JSON.stringify(asked.view), frames: [] };
  opened.onmessage = (event) => receive(JSON.parse(event.data));
  // In this order: a wire may have closed before anybody listened.
  for (const text of said) receive(JSON.parse(text));
  if (opened.readyState === WebSocket.CLOSED) closed();
  else opened.addEventListener("close", () => socket === opened && closed());
}

/** End the connection and try no more; for a session that is over. */
export function end() {
  connection.value = "ended";
  window.clearTimeout(timer);
  fail("the session has ended");
  socket?.close();
  socket = null;
}

/** Try at once, for a person who does not want to wait. */
export function retry() {
  if (connection.value !== "lost") return;
  attempts = 0;
  connect();
}

function receive(frame) {
  heardAt.value = Date.now();
  if (frame.hello) return greeted(frame.hello);
  if (frame.bye) return frame.bye.reason === "SessionEnded" ? end() : undefined;
  const question = questions.get(frame.id);
  if (question) {
    window.clearTimeout(question.timer);
    questions.delete(frame.id);
    return frame.error ? question.reject(new HubError(frame.error)) : question.resolve(frame.set);
  }
  const program = programs.get(frame.id);
  if (program) {
    if (frame.error || "exit" in frame) programs.delete(frame.id);
    return program(frame);
  }
  if (early && frame.id === FIRST) return early.frames.push(frame);
  return subscriptions.get(frame.id)?.receive(frame);
}

function greeted(said) {
  if (said.protocol !== PROTOCOL) {
    connection.value = "refused";
    socket?.close();
    return;
  }
  // What is shown is of a store that is not there any more: nothing of it may be mixed with this one's.
  if (hello.value && hello.value.store !== said.store) {
    connection.value = "moved";
    socket?.close();
    return;
  }
  hello.value = said;
  attempts = 0;
  connection.value = "live";
  for (const [id, { kind, view }] of subscriptions) send({ id, sub: kind, view });
}

async function closed() {
  socket = null;
  early = null;
  if (["ended", "refused", "moved"].includes(connection.value)) return;
  fail("the connection to the hub was lost");
  // Who was greeted sees at once that the connection is gone; of others nothing is known yet.
  if (hello.value) connection.value = "lost";
  if (await sessionOver()) return end();
  connection.value = "lost";
  const pause = Math.min(MAX_PAUSE_MS, MIN_PAUSE_MS * 2 ** attempts) * (0.5 + Math.random() / 2);
  attempts += 1;
  retryAt.value = Date.now() + pause;
  timer = window.setTimeout(connect, pause);
}

/** Tell a lost hub from an ended session: a closed handshake says neither. */
async function sessionOver() {
  try {
    const answer = await fetch("/console/session", { headers: { "X-Skerry-Console": "1" } });
    return answer.status === 401;
  } catch {
    return false; // the hub is not there: that says nothing about the session
  }
}

function fail(sentence) {
  for (const { reject, timer: pending } of questions.values()) {
    window.clearTimeout(pending);
    reject(new HubError({ message: sentence, reason: "Disconnected" }));
  }
  questions.clear();
  const lost = [...programs.values()];
  programs.clear();
  for (const receiveFrame of lost) receiveFrame({ error: { message: sentence, reason: "Disconnected" } });
}

function send(frame) {
  if (connection.value === "live") socket?.send(JSON.stringify(frame));
}

/** Return what the hub said to what was asked for with the page, if that is what is wanted now. */
function takenOver(kind, view) {
  const found = early;
  early = null;
  if (!found) return null;
  if (found.kind === kind && found.text === JSON.stringify(view)) return found.frames;
  send({ id: FIRST, unsub: true });
  return null;
}

/** Subscribe; returns functions to change the view and to stop. @param {string} kind @param {object} view */
export function subscribe(kind, view, receiveFrame) {
  const begun = takenOver(kind, view);
  const id = begun ? FIRST : ++lastId;
  const subscription = { kind, view, receive: receiveFrame };
  subscriptions.set(id, subscription);
  if (begun) for (const frame of begun) receiveFrame(frame);
  else send({ id, sub: kind, view });
  return {
    change(other) {
      subscription.view = other;
      send({ id, sub: kind, view: other });
    },
    stop() {
      subscriptions.delete(id);
      send({ id, unsub: true });
    },
  };
}

/** Ask one question. @param {string} kind @param {object} words @returns {Promise<any>} */
export function ask(kind, words) {
  if (connection.value !== "live") {
    return Promise.reject(new HubError({ message: "not connected to the hub", reason: "Disconnected" }));
  }
  const id = ++lastId;
  return new Promise((resolve, reject) => {
    const pending = window.setTimeout(() => {
      questions.delete(id);
      reject(new HubError({ message: "the hub did not answer in 30 s", reason: "Timeout" }));
    }, ANSWER_MS);
    questions.set(id, { resolve, reject, timer: pending });
    send({ id, ask: kind, with: words });
  });
}

/**
 * Run a program in a terminal; it ends with a frame that has `exit` or `error`, and does not come back
 * with the connection. Returns what sends more about it.
 *
 * @param {string} kind @param {object} words @param {number[]} size @param {(frame: any) => void} receiveFrame
 */
export function run(kind, words, size, receiveFrame) {
  const id = ++lastId;
  programs.set(id, receiveFrame);
  if (connection.value === "live") send({ id, run: kind, with: words, size });
  else window.setTimeout(() => programs.delete(id) && receiveFrame({ error: { message: "not connected to the hub", reason: "Disconnected" } }));
  return (frame) => {
    if (!programs.has(id)) return;
    if (frame.end) programs.delete(id);
    send({ id, ...frame });
  };
}
