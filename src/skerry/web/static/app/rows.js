// A list of any length with a screenful of elements. The hub is asked for the window that is shown
// and some rows around it; heights are the style sheet's, read, so zoom and narrow screens work.

import { html, useEffect, useLayoutEffect, useRef, useState } from "./ui.js";

const AROUND = 12;
const MAX_WINDOW = 84;

/** Return the window of rows to ask for. @returns {[number, number]} */
export function windowOf(top, height, row, total) {
  const first = Math.max(0, Math.floor(top / row) - AROUND);
  const visible = Math.ceil(height / row) + 2 * AROUND;
  return [first, Math.min(Math.max(total, 1), first + Math.min(MAX_WINDOW, visible))];
}

/**
 * @param {object} props
 * @param {number} props.total
 * @param {number} props.from           index of the first row of *rows*
 * @param {any[]} props.rows            what the hub sent
 * @param {[string, string][]} props.columns  class and title of each column
 * @param {(row: any, index: number) => any[]} props.cells  one content per column; the first has the link
 * @param {(from: number, to: number) => void} props.onWindow
 */
export function VirtualRows({ total, from, rows, columns, cells, onWindow, label, stale = false }) {
  const box = useRef(null);
  const [size, setSize] = useState({ top: 0, height: 600, row: 32 });
  const read = () => {
    const probe = box.current.querySelector(".probe");
    const next = { top: box.current.scrollTop, height: box.current.clientHeight, row: probe.offsetHeight || 32 };
    setSize((known) => (known.top === next.top && known.height === next.height && known.row === next.row ? known : next));
  };
  useLayoutEffect(() => {
    const watched = new ResizeObserver(read);
    watched.observe(box.current);
    watched.observe(box.current.querySelector(".probe"));
    read();
    return () => watched.disconnect();
  }, []);
  const [first, end] = windowOf(size.top, size.height, size.row, total);
  useEffect(() => onWindow(first, end), [first, end]);
  const shown = [];
  for (let index = first; index < Math.min(end, total); index++) shown.push(index);
  return html`<div class="rows ${stale ? "stale" : ""}" role="table" aria-label=${label} aria-rowcount=${total + 1}>
    <div class="row head" role="row" aria-rowindex="1">
      ${columns.map(([kind, title]) => html`<span class="cell ${kind}" role="columnheader">${title}</span>`)}
    </div>
    <div class="scroll" ref=${box} onScroll=${read} role="rowgroup" tabindex="0" aria-label="${label}, rows">
      <div class="probe row" aria-hidden="true"></div>
      <div class="space" role="presentation" style=${{ height: `${total * size.row}px` }}>
        ${shown.map((index) => {
          const row = rows[index - from];
          const content = row ? cells(row, index) : columns.map(() => "");
          return html`<div class="row item ${row ? "" : "pending"}" role="row" key=${index} aria-rowindex=${index + 2} style=${{ top: `${index * size.row}px` }}>
            ${columns.map(([kind], column) => html`<span class="cell ${kind}" role="cell">${content[column]}</span>`)}
          </div>`;
        })}
      </div>
    </div>
  </div>`;
}
