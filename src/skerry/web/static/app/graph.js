// One placement as a graph: what it selects, how many edges that goes to, and how it is there. Four
// columns that are always in this order need no layout engine; above two hundred nodes kinds stand for
// their objects. The tables of the same view say the same in words.

import { html } from "./ui.js";
import { STATES } from "./states.js";
import { count, counted, objectName } from "./format.js";

const MAX_NODES = 200;
const ROW = 40;
const NODE = 30;
const WIDTHS = [150, 230, 110, 190];
const BETWEEN = 56;
const MARGIN = 4;

/** Return the nodes of the second column: objects, or kinds where objects are too many. */
export function objectNodes(stages, max = MAX_NODES) {
  if (stages.length <= max) return stages.map((stage) => ({ label: objectName(stage.object), part: stage.healthy, whole: stage.wanted }));
  const kinds = new Map();
  for (const { object, healthy, wanted } of stages) {
    const kind = object.resource ?? object.kind ?? "";
    const known = kinds.get(kind) ?? { kind, number: 0, part: 0, whole: 0 };
    kinds.set(kind, { kind, number: known.number + 1, part: known.part + healthy, whole: known.whole + wanted });
  }
  return [...kinds.values()].map(({ kind, number, part, whole }) => ({ label: `${count(number)} ${kind}`, part, whole }));
}

function shortened(text, width) {
  const max = Math.floor((width - 16) / 7.2);
  return text.length > max ? `${text.slice(0, max - 1)}…` : text;
}

const left = (column) => MARGIN + WIDTHS.slice(0, column).reduce((sum, width) => sum + width + BETWEEN, 0);

function Node({ column, at, label, state, part, whole }) {
  const width = WIDTHS[column];
  return html`<g class="node ${state ? `node-${state}` : ""}" transform="translate(${left(column)} ${at - NODE / 2})"><title>${label}</title>
    <rect width=${width} height=${NODE} rx="4" class="node-box" />
    ${whole > 0 && html`<rect y=${NODE - 4} width=${(width * Math.min(part, whole)) / whole} height="4" class="node-part" />`}
    <text x="8" y=${NODE / 2 + 4}>${shortened(label, width)}</text></g>`;
}

function Line({ column, from, to }) {
  const start = left(column) + WIDTHS[column];
  const end = left(column + 1);
  const middle = (start + end) / 2;
  return html`<path class="graph-line" d="M${start} ${from}C${middle} ${from} ${middle} ${to} ${end} ${to}" />`;
}

export function Graph({ name, stages, total, counts }) {
  const objects = objectNodes(stages);
  const states = STATES.filter(({ key }) => counts?.[key] > 0);
  const rows = Math.max(1, objects.length, states.length);
  const height = rows * ROW + 2 * MARGIN;
  const middle = height / 2;
  const place = (index, number) => middle + (index - (number - 1) / 2) * ROW;
  const width = left(3) + WIDTHS[3] + MARGIN;
  const words = `${name} selects ${counted(objects.length, "object")} for ${counted(total, "edge")}: ${states.map(({ key, word }) => `${count(counts[key])} ${word}`).join(", ") || "none yet"}`;
  return html`<div class="wide graph" tabindex="0" role="region" aria-label="Drawing of the placement"><svg width=${width} height=${height} viewBox="0 0 ${width} ${height}" role="img" aria-label=${words}>
    ${objects.map((_, index) => html`<${Line} key=${`s${index}`} column=${0} from=${middle} to=${place(index, objects.length)} />`)}
    ${objects.map((_, index) => html`<${Line} key=${`o${index}`} column=${1} from=${place(index, objects.length)} to=${middle} />`)}
    ${states.map(({ key }, index) => html`<${Line} key=${key} column=${2} from=${middle} to=${place(index, states.length)} />`)}
    <${Node} column=${0} at=${middle} label=${name} />
    ${objects.map((object, index) => html`<${Node} key=${index} column=${1} at=${place(index, objects.length)} ...${object} />`)}
    <${Node} column=${2} at=${middle} label=${counted(total, "edge")} />
    ${states.map(({ key, word, shape }, index) => html`<${Node} key=${key} column=${3} at=${place(index, states.length)} state=${key} label="${shape} ${count(counts[key])} ${word}" part=${counts[key]} whole=${total} />`)}
  </svg></div>`;
}
