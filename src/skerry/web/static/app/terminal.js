// A terminal in the page: xterm, fetched by who opens one. It shows letters and colours. What else a
// program may ask a terminal for by its escape sequences — the page's title, links, the clipboard — it
// does not get, because what a program prints is often somebody else's text.
//
// xterm writes <style> elements, which the page's Content-Security-Policy forbids. The vendored copy
// makes elements of ours instead (see VERSIONS.json), whose text becomes a style sheet of the document
// without ever being markup.

import { effect } from "./ui.js";
import { styled } from "./sheets.js";
import { theme } from "./theme.js";

const SCROLLBACK = 5000;
const SCROLLBAR_PX = 14;
const FAMILY = 'ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';
/** Titles, links and the clipboard: heard, and nothing comes of it. */
const IGNORED = [0, 1, 2, 8, 52];
/** As the hub takes it. */
const MAX_SIDE = 1000;
/** What people do to a terminal, and how soon after it what comes of it is there. */
const ACTS = ["keydown", "input", "paste", "compositionend", "pointerdown", "pointerup", "wheel"];
const ACT_MS = 500;

class AdoptedStyle extends HTMLElement {
  #sheet = new CSSStyleSheet();

  connectedCallback() {
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, this.#sheet];
  }

  disconnectedCallback() {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== this.#sheet);
  }

  get textContent() {
    return "";
  }

  set textContent(text) {
    this.#sheet.replaceSync(text);
  }
}

/** Tell whether a key leaves the terminal; every other key is the program's. @param {KeyboardEvent} event */
export function leaves(event) {
  return event.ctrlKey && event.shiftKey && event.key === "Enter";
}

/** Return the colours of the page. @param {HTMLElement} box */
function colours(box) {
  const style = getComputedStyle(box);
  const [background, foreground, selection] = ["--back", "--text", "--line"].map((name) => style.getPropertyValue(name).trim());
  return { background, foreground, cursor: foreground, cursorAccent: background, selectionBackground: selection };
}

/** Return how many letters fit in *box*, in width and height. */
function fitting(box, shown) {
  const screen = box.querySelector(".xterm-screen").getBoundingClientRect();
  const side = (length, of, count) => Math.max(2, Math.min(MAX_SIDE, Math.floor(length / (of / count)) || 2));
  return [side(box.clientWidth - SCROLLBAR_PX, screen.width, shown.cols), side(box.clientHeight, screen.height, shown.rows)];
}

/**
 * Show a terminal in *box*.
 *
 * @param {HTMLElement} box
 * @param {{typed: (bytes: Uint8Array, answered: boolean) => void, resized: (size: number[]) => void, left: () => void}} heard
 */
export async function terminalIn(box, heard) {
  if (!customElements.get("adopted-style")) customElements.define("adopted-style", AdoptedStyle);
  const [{ Terminal }] = await Promise.all([import("../vendor/xterm.js"), styled(new URL("../vendor/xterm.css", import.meta.url).href)]);
  const shown = new Terminal({ fontFamily: FAMILY, fontSize: 14, scrollback: SCROLLBACK, minimumContrastRatio: 4.5, theme: colours(box) });
  for (const number of IGNORED) shown.parser.registerOscHandler(number, () => true);
  shown.open(box);
  let over = false;
  shown.attachCustomKeyEventHandler((event) => {
    if (over) return false;
    if (!leaves(event)) return true;
    event.preventDefault();
    if (event.type === "keydown") heard.left();
    return false;
  });
  // A terminal also answers by itself: where its cursor is, what it is called. That is nobody typing.
  let acted = -ACT_MS;
  for (const kind of ACTS) box.addEventListener(kind, () => (acted = performance.now()), { capture: true, passive: true });
  const answered = () => performance.now() - acted > ACT_MS;
  const encoder = new TextEncoder();
  shown.onData((text) => heard.typed(encoder.encode(text), answered()));
  shown.onBinary((text) => heard.typed(Uint8Array.from(text, (letter) => letter.charCodeAt(0)), answered()));
  const fit = () => shown.resize(...fitting(box, shown));
  fit();
  shown.onResize(({ cols, rows }) => heard.resized([cols, rows]));
  const observer = new ResizeObserver(fit);
  observer.observe(box);
  const paint = () => (shown.options.theme = colours(box));
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", paint);
  const painting = effect(() => {
    // The choice of colours is in the page's attributes once whoever made it has returned.
    if (theme.value) queueMicrotask(paint);
  });
  return {
    size: [shown.cols, shown.rows],
    write: (bytes, done) => shown.write(bytes, done),
    focus: () => shown.focus(),
    selection: () => shown.getSelection(),
    read: (aloud) => (shown.options.screenReaderMode = aloud),
    describe: (id) => shown.textarea.setAttribute("aria-describedby", id),
    /** Take no more keys: they are the page's again. */
    end() {
      over = true;
      shown.options.disableStdin = true;
    },
    dispose() {
      over = true;
      painting();
      dark.removeEventListener("change", paint);
      observer.disconnect();
      shown.dispose();
    },
  };
}
