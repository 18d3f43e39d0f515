// The map: one cell per edge, grouped, drawn on canvases because ten thousand elements would take
// seconds. A canvas has no elements to focus, so one real button stands on the current cell and moves
// with the arrow keys; it is what readers and the keyboard meet. The list beside the map is its equal.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./ui.js";
import { STATES } from "./states.js";
import { count } from "./format.js";

// More groups than these are not looked at one by one; the rest is one line that says so.
const MAX_GROUPS = 120;
const GAP = 2;
// In CSS pixels: between groups, the least a group may have, and its name with the space around it.
const BETWEEN = 12;
const MIN_GROUP = 132;
const HEAD = 36;

/** Return the size of a cell in CSS pixels: as large as leaves the fleet on one screen. */
export function cellSize(total) {
  if (total <= 64) return 24;
  if (total <= 600) return 16;
  if (total <= 4000) return 11;
  return 8;
}

/** Return how a group of *size* edges is laid out within *width* pixels. */
export function layout(size, cell, width) {
  const pitch = cell + GAP;
  const widest = Math.max(1, Math.floor((width - GAP) / pitch));
  const columns = Math.min(widest, size);
  return { columns, rows: Math.ceil(size / columns), pitch };
}

/** Return how many groups stand side by side: as many as make the whole map least high. */
export function abreast(sizes, cell, width) {
  const max = Math.max(1, Math.min(sizes.length, Math.floor(width / MIN_GROUP)));
  let best = { number: 1, height: Infinity };
  for (let number = 1; number <= max; number++) {
    const own = groupWidth(width, number);
    let height = 0;
    for (let first = 0; first < sizes.length; first += number) {
      const tallest = Math.max(...sizes.slice(first, first + number));
      height += HEAD + layout(tallest, cell, own).rows * (cell + GAP);
    }
    if (height < best.height) best = { number, height };
  }
  return best.number;
}

/** Return the width of a group's cells, its border not counted, where *number* stand side by side. */
function groupWidth(width, number) {
  return Math.floor((width - (number - 1) * BETWEEN) / number) - 2;
}

/** Draw a state's shape; the colours come from the style sheet, so themes reach the canvas too. */
function drawShape(context, key, size, colour, outline) {
  const middle = size / 2;
  const radius = size / 2 - 0.75;
  context.fillStyle = colour;
  context.strokeStyle = outline;
  context.lineWidth = 1;
  context.beginPath();
  if (key === "unhealthy" || key === "lost") {
    context.rect(0.5, 0.5, size - 1, size - 1);
  } else if (key === "degraded") {
    context.moveTo(middle, 0.5);
    context.lineTo(size - 0.5, size - 0.5);
    context.lineTo(0.5, size - 0.5);
    context.closePath();
  } else if (key === "changed" || key === "placed") {
    context.moveTo(middle, 0.5);
    context.lineTo(size - 0.5, middle);
    context.lineTo(middle, size - 0.5);
    context.lineTo(0.5, middle);
    context.closePath();
  } else {
    context.arc(middle, middle, key === "same" ? radius / 2.5 : radius, 0, 2 * Math.PI);
  }
  if (key === "away" || key === "unknown") {
    context.strokeStyle = colour;
    context.lineWidth = Math.max(1, size / 8);
    if (key === "away") context.setLineDash([size / 5, size / 8]);
    context.stroke();
    context.setLineDash([]);
    return;
  }
  context.fill();
  if (key !== "healthy" && key !== "same") context.stroke();
  if (key === "progressing" || key === "gained" || key === "lost") drawSign(context, key, size);
}

function drawSign(context, key, size) {
  const middle = size / 2;
  context.strokeStyle = "#fff";
  context.lineWidth = Math.max(1, size / 8);
  context.beginPath();
  if (key === "progressing") context.arc(middle, middle, size / 5, 0.5, 1.6 * Math.PI);
  if (key !== "progressing") {
    context.moveTo(size / 4, middle);
    context.lineTo((3 * size) / 4, middle);
  }
  if (key === "gained") {
    context.moveTo(middle, size / 4);
    context.lineTo(middle, (3 * size) / 4);
  }
  context.stroke();
}

/** The pictures that were drawn last, and for what: all groups of a map stamp the same. */
let stamped = { key: "", palette: null, pictures: [] };

/** Return one picture per state, drawn once and stamped per cell. */
function sprites(palette, cell, ratio, theme, element) {
  const key = `${cell} ${ratio} ${theme}`;
  if (stamped.key !== key || stamped.palette !== palette) {
    stamped = { key, palette, pictures: pictures(palette, cell, ratio, getComputedStyle(element)) };
  }
  return stamped.pictures;
}

/** @returns {ImageData[]} */
function pictures(palette, cell, ratio, style) {
  const side = Math.ceil(cell * ratio);
  const sprite = document.createElement("canvas");
  sprite.width = sprite.height = side;
  const context = sprite.getContext("2d", { willReadFrequently: true });
  context.scale(ratio, ratio);
  return palette.map(({ key }) => {
    context.clearRect(0, 0, side, side);
    drawShape(context, key, cell, style.getPropertyValue(`--${key}`).trim(), style.getPropertyValue("--outline").trim());
    return context.getImageData(0, 0, side, side);
  });
}

/**
 * Draw all cells of a group: into one picture, which is put on the canvas at once. Ten thousand calls
 * of the canvas would take several times as long.
 */
function drawAll(context, bytes, stamps, place) {
  const { width, height } = context.canvas;
  const picture = context.createImageData(width, height);
  const pixels = new Uint32Array(picture.data.buffer);
  const shapes = stamps.map(({ data }) => new Uint32Array(data.buffer));
  const side = stamps[0].width;
  for (let index = 0; index < bytes.length; index++) {
    const shape = shapes[Math.min(bytes[index], shapes.length - 1)];
    const [x, y] = place(index);
    // Zoomed out, rounding may lead past the edge: those pixels are not the next line's.
    const wide = Math.min(side, width - x);
    for (let row = 0; row < side; row++) {
      const to = (y + row) * width + x;
      const from = row * side;
      for (let column = 0; column < wide; column++) pixels[to + column] = shape[from + column];
    }
  }
  context.putImageData(picture, 0, 0);
}

/** Draw the cells that differ from *before*. */
function drawChanged(context, bytes, before, stamps, place) {
  for (let index = 0; index < bytes.length; index++) {
    if (before[index] === bytes[index]) continue;
    const [x, y] = place(index);
    context.putImageData(stamps[Math.min(bytes[index], stamps.length - 1)], x, y);
  }
}

/** One group's cells. */
function Cells({ cells, start, size, cell, width, palette, theme, current, label, onMove, onPick, onHover }) {
  const canvas = useRef(null);
  const plan = layout(size, cell, width);
  const drawn = useRef({ bytes: null, key: "" });
  useLayoutEffect(() => {
    const ratio = window.devicePixelRatio || 1;
    const element = canvas.current;
    const key = `${plan.columns} ${size} ${cell} ${ratio} ${theme} ${palette.length}`;
    const bytes = cells.subarray(start, start + size);
    const context = element.getContext("2d");
    const fresh = drawn.current.key !== key;
    if (fresh) {
      element.width = Math.ceil((plan.columns * plan.pitch + GAP) * ratio);
      element.height = Math.ceil((plan.rows * plan.pitch + GAP) * ratio);
      drawn.current = { bytes: null, key, stamps: sprites(palette, cell, ratio, theme, element) };
    }
    const { bytes: before, stamps } = drawn.current;
    const place = (index) => [
      Math.round((GAP + (index % plan.columns) * plan.pitch) * ratio),
      Math.round((GAP + Math.floor(index / plan.columns) * plan.pitch) * ratio),
    ];
    if (before) drawChanged(context, bytes, before, stamps, place);
    else drawAll(context, bytes, stamps, place);
    drawn.current.bytes = bytes.slice();
  });
  const at = (event) => {
    const box = canvas.current.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * (plan.columns + GAP / plan.pitch));
    const row = Math.floor((event.clientY - box.top) / plan.pitch);
    const index = row * plan.columns + Math.min(column, plan.columns - 1);
    return index >= 0 && index < size ? start + index : -1;
  };
  const here = current >= start && current < start + size ? current - start : -1;
  const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: plan.columns, ArrowUp: -plan.columns };
  const pressed = (event) => {
    const step = steps[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (step) onMove(current + step);
    else if (event.key === "Home") onMove(start);
    else if (event.key === "End") onMove(start + size - 1);
    else if (event.key === "PageDown") onMove(start + size);
    else if (event.key === "PageUp") onMove(start - 1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return html`<div class="cells" role="gridcell">
    <canvas ref=${canvas} class="canvas" aria-hidden="true" style=${{ width: `${plan.columns * plan.pitch + GAP}px`, height: `${plan.rows * plan.pitch + GAP}px` }}
      onPointerMove=${(event) => onHover(at(event))} onPointerLeave=${() => onHover(-1)}
      onClick=${(event) => at(event) >= 0 && onPick(at(event))}></canvas>
    ${here >= 0 && html`<button type="button" class="cursor" aria-label=${label} onKeyDown=${pressed} onClick=${() => onPick(current)}
      style=${{ left: `${GAP / 2 + (here % plan.columns) * plan.pitch - 2}px`, top: `${GAP / 2 + Math.floor(here / plan.columns) * plan.pitch - 2}px`, width: `${cell + 6}px`, height: `${cell + 6}px` }}></button>`}
  </div>`;
}

const THEMES = ["(prefers-color-scheme: dark)", "(forced-colors: active)"];

function themeNow() {
  return `${document.documentElement.dataset.theme ?? ""}${THEMES.map((text) => window.matchMedia(text).matches)}${window.devicePixelRatio}`;
}

/** The words of a theme that the canvas must be drawn again for. */
function useTheme() {
  const [theme, setTheme] = useState(themeNow);
  useEffect(() => {
    const queries = THEMES.map((text) => window.matchMedia(text));
    const read = () => setTheme(themeNow());
    const watched = new MutationObserver(read);
    watched.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    for (const query of queries) query.addEventListener("change", read);
    window.addEventListener("resize", read);
    return () => {
      watched.disconnect();
      for (const query of queries) query.removeEventListener("change", read);
      window.removeEventListener("resize", read);
    };
  }, []);
  return theme;
}

/** The width the map may take, by its own box. */
function useWidth(element) {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const read = () => setWidth(element.current.clientWidth);
    const watched = new ResizeObserver(read);
    watched.observe(element.current);
    read();
    return () => watched.disconnect();
  }, []);
  return width;
}

/**
 * @param {object} props
 * @param {{value: string, count: number, counts?: Record<string, number>}[]} props.groups
 * @param {Uint8Array} props.cells   one byte per edge, in the order of the groups
 * @param {(index: number) => Promise<{ws: string, name: string, problem?: string}>} props.lookup
 * @param {(index: number) => void} props.onPick
 */
export function EdgeMap({ groups, cells, by, lookup, onPick, stale = false, palette = STATES, title = "Map of edges" }) {
  const box = useRef(null);
  const width = useWidth(box);
  const theme = useTheme();
  const [current, setCurrent] = useState(0);
  const [hover, setHover] = useState(-1);
  const [focused, setFocused] = useState(false);
  const [named, setNamed] = useState({ index: -1, row: null });
  const shown = groups.slice(0, MAX_GROUPS);
  const cell = cellSize(cells.length);
  const number = useMemo(() => abreast(shown.map((group) => group.count), cell, width), [groups, cell, width]);
  const starts = useMemo(() => shown.reduce((sums, group) => [...sums, sums.at(-1) + group.count], [0]), [groups]);
  const last = Math.min(cells.length, starts.at(-1)) - 1;
  const cursor = Math.min(current, last);
  const asked = hover >= 0 ? hover : cursor;
  useEffect(() => {
    if (asked < 0 || (hover < 0 && !focused)) return undefined;
    let old = false;
    const timer = window.setTimeout(() => {
      lookup(asked).then((row) => old || setNamed({ index: asked, row }), () => old || setNamed({ index: -1, row: null }));
    }, 60);
    return () => {
      old = true;
      window.clearTimeout(timer);
    };
  }, [asked, focused, cells]);
  const moved = useRef(false);
  const move = (index) => {
    moved.current = true;
    setCurrent(Math.max(0, Math.min(last, index)));
  };
  useLayoutEffect(() => {
    // Between groups the button is another element: the focus goes with it.
    if (moved.current) box.current.querySelector(".cursor")?.focus();
    moved.current = false;
  }, [cursor]);
  const describe = (index) => {
    const state = palette[Math.min(cells[index], palette.length - 1)]?.word ?? "unknown";
    const row = named.index === index ? named.row : null;
    return row ? `${row.name}, ${state}${row.problem ? `, ${row.problem}` : ""}` : `edge ${count(index + 1)} of ${count(cells.length)}, ${state}`;
  };
  return html`<div class="map ${stale ? "stale" : ""}">
    <div class="groups" role="grid" aria-label=${title} ref=${box} style=${{ gridTemplateColumns: `repeat(${number}, minmax(0, 1fr))` }}
      onFocusIn=${() => setFocused(true)} onFocusOut=${() => setFocused(false)}>
      ${width > 0 && shown.map((group, index) => group.count > 0 && html`<div class="group" role="row" key=${group.value}>
        <div class="group-name" role="rowheader"><bdi>${group.value || (by ? `no ${by}` : "all edges")}</bdi> <span class="quiet">${count(group.count)}</span></div>
        <${Cells} cells=${cells} start=${starts[index]} size=${group.count} cell=${cell} width=${groupWidth(width, number)} palette=${palette} theme=${theme}
          current=${cursor} label=${describe(cursor)} onMove=${move} onPick=${onPick} onHover=${setHover} />
      </div>`)}
    </div>
    ${groups.length > shown.length && html`<p class="quiet">and ${count(groups.length - shown.length)} more groups: the list has their edges</p>`}
    <p class="map-info" aria-hidden="true">${asked >= 0 && (hover >= 0 || focused) ? describe(asked) : ""}</p>
  </div>`;
}
