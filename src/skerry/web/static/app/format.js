// Numbers, ages and names as people read them.

const NUMBER = new Intl.NumberFormat("en");

/** @param {number} value */
export function count(value) {
  return NUMBER.format(value ?? 0);
}

/** Return *count* with the noun it counts: "1 edge", "2,480 edges". */
export function counted(value, noun) {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** Return how long ago *then* was, in the largest unit that says enough: "4m". @param {number} seconds */
export function age(seconds) {
  if (!Number.isFinite(seconds)) return "";
  const past = Math.max(0, seconds);
  if (past < 60) return `${Math.floor(past)}s`;
  if (past < 3600) return `${Math.floor(past / 60)}m`;
  if (past < 172800) return `${Math.floor(past / 3600)}h`;
  return `${Math.floor(past / 86400)}d`;
}

/** Return milliseconds of a timestamp: ISO text, or seconds since 1970. @param {string|number|null|undefined} value */
export function instant(value) {
  if (value === null || value === undefined || value === "") return NaN;
  return typeof value === "number" ? value * 1000 : Date.parse(value);
}

/** Return the time of day with seconds, and the date unless it is *now*'s. */
export function clockTime(value, now = Date.now()) {
  const when = new Date(instant(value));
  if (Number.isNaN(when.getTime())) return "";
  const time = when.toLocaleTimeString("en-GB");
  return when.toDateString() === new Date(now).toDateString() ? time : `${when.toISOString().slice(0, 10)} ${time}`;
}

/** Return a moment as an input of date and time has it, in the zone of whoever looks. @param {number} moment */
export function localInput(moment) {
  const there = new Date(moment - new Date(moment).getTimezoneOffset() * 60_000);
  return there.toISOString().slice(0, 19);
}

/** Return a moment as addresses have it. @param {number} moment */
export function momentWord(moment) {
  return `${new Date(moment).toISOString().slice(0, 19)}Z`;
}

/** Return how a table names an object: "Deployment shop/web". */
export function objectName(object) {
  if (!object) return "";
  if (typeof object === "string") return object;
  const kind = object.kind ?? object.resource ?? "";
  return `${kind} ${object.namespace ? `${object.namespace}/` : ""}${object.name ?? ""}`.trim();
}

/** Return *text* as a sentence begins. @param {string} text */
export function sentenceCase(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
