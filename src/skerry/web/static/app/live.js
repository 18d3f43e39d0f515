// From frames to what a view shows: a snapshot, then differences laid over it.

import { useEffect, useLayoutEffect, useRef, useState } from "./ui.js";
import { connection, subscribe, ask } from "./socket.js";

const GONE = new Set([401, 403, 404, 410]);
// The hub is still reading what it is asked about: nothing is wrong, and it is asked again.
const NOT_YET = 503;
const NOT_YET_MS = 1000;

/**
 * @typedef {object} Live
 * @property {any} data       the last known view, or null
 * @property {object|null} error  a Status, when the hub refused
 * @property {number} rev
 * @property {() => void} retry   ask again, after an error
 */

/** Return bytes of base64 text. @param {string} text */
export function bytes(text) {
  const binary = window.atob(text);
  const cells = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index++) cells[index] = binary.charCodeAt(index);
  return cells;
}

/** Return a snapshot as views take it: cells as bytes. */
export function opened(snapshot) {
  return typeof snapshot?.cells === "string" ? { ...snapshot, cells: bytes(snapshot.cells) } : snapshot;
}

/** Return *data* with *patch* laid over it; *data* stays as it was. */
export function patched(data, patch) {
  const next = { ...data };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) {
      delete next[key];
    } else if (key === "cells" && Array.isArray(value)) {
      next.cells = data.cells.slice();
      for (const [index, byte] of value) next.cells[index] = byte;
    } else if (key === "cells") {
      next.cells = bytes(value);
    } else if ((key === "rows" || key === "groups") && !Array.isArray(value)) {
      next[key] = data[key].slice();
      for (const [index, entry] of Object.entries(value)) next[key][Number(index)] = entry;
    } else {
      next[key] = value;
    }
  }
  return next;
}

/**
 * Follow a subscription while the component is shown. A new view of the same kind keeps what is
 * known until its own snapshot is here: no flicker, and no spinner over known data.
 *
 * @param {string} kind
 * @param {object|null} view  null while there is nothing to ask for
 * @returns {Live}
 */
export function useLive(kind, view) {
  const [live, setLive] = useState({ data: null, error: null, rev: 0, view: null });
  const handle = useRef(null);
  const wanted = useRef(view);
  wanted.current = view;
  const text = view === null ? "" : JSON.stringify(view);
  // Before the first paint: what the hub has said already is then in it.
  useLayoutEffect(() => {
    if (view === null) return undefined;
    let current = { data: null, error: null, rev: 0, view: null };
    const show = (next) => setLive((current = next));
    let timer = 0;
    handle.current = subscribe(kind, view, (frame) => {
      // What may not be seen any more is not shown any more; a filter half typed keeps what is known.
      if (frame.error?.code === NOT_YET) timer = window.setTimeout(() => handle.current?.change(wanted.current), NOT_YET_MS);
      else if (frame.error) show({ ...current, error: frame.error, data: GONE.has(frame.error.code) ? null : current.data });
      else if (frame.set) show({ data: opened(frame.set), error: null, rev: frame.rev, view: wanted.current });
      else if (frame.patch && current.data) {
        const shown = frame.new ? { error: null, view: wanted.current } : {};
        show({ ...current, data: patched(current.data, frame.patch), rev: frame.rev, ...shown });
      }
    });
    return () => {
      window.clearTimeout(timer);
      handle.current.stop();
      handle.current = null;
      setLive({ data: null, error: null, rev: 0, view: null });
    };
  }, [kind, view === null]);
  const first = useRef(text);
  // Asked for before what is shown now is painted: the answer is on its way meanwhile.
  useLayoutEffect(() => {
    if (first.current !== text && handle.current && view !== null) handle.current.change(view);
    first.current = text;
  }, [text]);
  return { ...live, retry: () => handle.current?.change(wanted.current) };
}

/**
 * Ask a question whenever *words* change, and again whenever *news* does; null asks nothing.
 *
 * @param {string} kind
 * @param {object|null} words
 * @param {any} [news]  what a subscription says about whether the answer may be another by now
 * @returns {{data: any, error: object|null, asking: boolean, retry: () => void}}
 */
export function useAnswer(kind, words, news = null) {
  const [answer, setAnswer] = useState({ data: null, error: null, asking: words !== null, about: "" });
  const [turn, setTurn] = useState(0);
  const text = words === null ? "" : JSON.stringify(words);
  const there = connection.value === "live";
  useEffect(() => {
    if (words === null || !there) return undefined;
    let stale = false;
    setAnswer((known) => ({ ...known, asking: true }));
    ask(kind, words).then(
      (data) => stale || setAnswer({ data, error: null, asking: false, about: text }),
      (error) => stale || setAnswer((known) => ({ data: known.data, error: error.status, asking: false, about: text })),
    );
    return () => {
      stale = true;
    };
  }, [kind, text, there, turn, news]);
  return { ...answer, asking: answer.asking || answer.about !== text, retry: () => setTurn((last) => last + 1) };
}
