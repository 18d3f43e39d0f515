// The six states of an edge. A state is never shown by its colour alone: each has a shape and a
// word, and the order here is the order of the bytes the hub sends for the map.

/**
 * @typedef {object} State
 * @property {string} key    as the hub's counts and filters write it
 * @property {string} word   as people read it
 * @property {string} shape  the character shown beside the word
 */

/** @type {readonly State[]} */
export const STATES = Object.freeze([
  { key: "healthy", word: "healthy", shape: "●" },
  { key: "progressing", word: "progressing", shape: "↻" },
  { key: "degraded", word: "degraded", shape: "▲" },
  { key: "unhealthy", word: "unhealthy", shape: "■" },
  { key: "away", word: "away", shape: "◌" },
  { key: "unknown", word: "unknown", shape: "?" },
]);

/** What an edit does to an edge, for the ghost map of "what if". @type {readonly State[]} */
export const EFFECTS = Object.freeze([
  { key: "same", word: "unchanged", shape: "·" },
  { key: "gained", word: "gained", shape: "+" },
  { key: "lost", word: "lost", shape: "−" },
  { key: "changed", word: "changed", shape: "◆" },
]);

/** Where a placement led at a moment and where it leads now, for the map of the timeline. @type {readonly State[]} */
export const THEN = Object.freeze([
  { key: "same", word: "then and now", shape: "·" },
  { key: "gained", word: "only now", shape: "+" },
  { key: "lost", word: "only then", shape: "−" },
]);

/** The states of an edge at a moment of the past: where nothing was judged, that a placement led there. @type {readonly State[]} */
export const PAST = Object.freeze([...STATES, { key: "placed", word: "placed", shape: "◆" }]);

const BY_KEY = new Map([...PAST, ...EFFECTS].map((state) => [state.key, state]));

/** Return the state called *key*; what the page does not know is unknown. @param {string} key */
export function stateOf(key) {
  return BY_KEY.get(key) ?? STATES[5];
}
