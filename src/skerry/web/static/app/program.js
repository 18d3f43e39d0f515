// A program at an edge that somebody types into, over the tab's one connection. Neither side swamps the
// other: the hub sends on only what was said to be shown, and this page only what the hub has taken.

import { run } from "./socket.js";
import { bytes } from "./live.js";

/** What may wait at the hub for a program that does not read; more of it ends the program. */
const ROOM_BYTES = 64 * 1024;
const PIECE_BYTES = 16 * 1024;
/** What may wait here: more than anybody types, and a long paste. */
const MAX_WAITING_BYTES = 1024 * 1024;
/** What is typed is sent this often at most; what was shown is noted this often, or for so much of it. */
const TYPED_MS = 10;
const SHOWN_MS = 50;
const SHOWN_BYTES = 32 * 1024;

/** Return base64 of *bytes*. @param {Uint8Array} piece */
function text(piece) {
  return window.btoa(String.fromCharCode(...piece));
}

/** Return the words of a command, as a shell would take them apart; quotes keep blanks. @param {string} line */
export function wordsOf(line) {
  const found = [];
  for (const [word] of line.matchAll(/(?:[^\s"']|"[^"]*"|'[^']*'|["'])+/g)) {
    found.push(word.replace(/"([^"]*)"|'([^']*)'/g, (_, double, single) => double ?? single));
  }
  return found;
}

/**
 * Run a program; what is heard of it ends with `exit` or `failed`.
 *
 * @param {string} kind
 * @param {object} words
 * @param {number[]} size
 * @param {{running: (facts: any) => void, printed: (bytes: Uint8Array, done: () => void) => void, exit: (code: number) => void, failed: (status: object) => void}} heard
 */
export function begin(kind, words, size, heard) {
  /** @type {Uint8Array[]} */
  let waiting = [];
  let held = 0;
  let room = ROOM_BYTES;
  let typing = 0;
  let shown = 0;
  let noting = 0;
  // Whether somebody typed any of what waits.
  let acted = false;
  const say = run(kind, words, size, (frame) => {
    if (frame.running) heard.running(frame.running);
    else if (frame.out) print(bytes(frame.out));
    else if (frame.taken) pass((room += frame.taken));
    else if (frame.error) over(() => heard.failed(frame.error));
    else over(() => heard.exit(frame.exit));
  });

  function over(notify) {
    window.clearTimeout(typing);
    window.clearTimeout(noting);
    notify();
  }

  function print(piece) {
    heard.printed(piece, () => {
      shown += piece.length;
      if (shown >= SHOWN_BYTES) note();
      else noting ||= window.setTimeout(note, SHOWN_MS);
    });
  }

  function note() {
    window.clearTimeout(noting);
    noting = 0;
    if (shown) say({ shown });
    shown = 0;
  }

  function pass() {
    window.clearTimeout(typing);
    typing = 0;
    while (held && room) {
      const whole = waiting.length > 1 ? joined(waiting, held) : waiting[0];
      const piece = whole.subarray(0, Math.min(PIECE_BYTES, room));
      waiting = piece.length < whole.length ? [whole.subarray(piece.length)] : [];
      held -= piece.length;
      room -= piece.length;
      say({ typed: text(piece), ...(acted ? {} : { answered: true }) });
    }
    if (!held) acted = false;
  }

  return {
    /** Pass on what was typed; false where too much waits already, and it is not. @param {Uint8Array} piece @param {boolean} answered by the terminal itself */
    type(piece, answered) {
      if (held + piece.length > MAX_WAITING_BYTES) return false;
      acted ||= !answered;
      waiting.push(piece);
      held += piece.length;
      typing ||= window.setTimeout(pass, TYPED_MS);
      return true;
    },
    resize: (other) => say({ size: other }),
    end: () => over(() => say({ end: true })),
  };
}

function joined(pieces, length) {
  const whole = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
