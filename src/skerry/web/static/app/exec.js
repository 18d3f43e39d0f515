// A command in a pod at an edge, with a terminal, through the tunnel that the edge's syncer dials. The
// address has the choice of pod and command; only a press of the button begins anything.

import { html, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "./ui.js";
import { useAnswer } from "./live.js";
import { Failure } from "./notices.js";
import { requery } from "./router.js";
import { announce } from "./announce.js";
import { Copy } from "./copy.js";
import { begin, wordsOf } from "./program.js";
import { terminalIn } from "./terminal.js";

const SHELL = "sh";

function ended(state) {
  return state.exit !== undefined ? `The command has ended with exit code ${state.exit}.` : "The session has ended.";
}

function sentence(state) {
  if (state.over) return ended(state);
  return state.pod ? html`Running in <bdi>${state.pod}</bdi>.` : "Starting …";
}

/** One session, from its beginning to its end; another one is another component. */
function Session({ asked, onOver, onAgain }) {
  const [state, setState] = useState({ pod: "", over: false });
  const [aloud, setAloud] = useState(false);
  const [dropped, setDropped] = useState(false);
  const box = useRef(null);
  const after = useRef(null);
  const shown = useRef(null);
  const program = useRef(null);
  const hint = useId();
  const finish = (facts) => {
    shown.current?.end();
    setState((known) => ({ ...known, ...facts, over: true }));
    announce(ended(facts));
    onOver();
  };
  useEffect(() => {
    let left = false;
    const heard = {
      typed: (piece, answered) => program.current && setDropped(!program.current.type(piece, answered)),
      resized: (size) => program.current?.resize(size),
      left: () => after.current.focus(),
    };
    const start = (terminal) => {
      if (left) return terminal.dispose();
      shown.current = terminal;
      terminal.describe(hint);
      terminal.focus();
      program.current = begin("exec", asked, terminal.size, {
        running: ({ pod }) => setState((known) => ({ ...known, pod })),
        printed: terminal.write,
        exit: (exit) => finish({ exit }),
        failed: (error) => finish({ error }),
      });
      return undefined;
    };
    terminalIn(box.current, heard).then(start, (error) => left || finish({ error: { message: `The terminal could not be loaded: ${error.message}` } }));
    return () => {
      left = true;
      program.current?.end();
      shown.current?.dispose();
    };
  }, []);
  useEffect(() => shown.current?.read(aloud), [aloud]);
  return html`<div class="session">
    <p id=${hint} class="quiet">Every key goes to the command, Tab and Escape too. <kbd>Ctrl</kbd>+<kbd>Shift</kbd>+<kbd>Enter</kbd> leaves the terminal for the buttons below it.
      ${" "}<kbd>Ctrl</kbd>+<kbd>Shift</kbd>+<kbd>V</kbd> pastes.</p>
    <div class="terminal-box" ref=${box} data-over=${state.over}></div>
    ${state.over && state.error && html`<${Failure} status=${state.error} title=${state.error.reason === "Forbidden" ? "You may not do this" : "The session has ended"} />`}
    ${dropped && html`<p role="alert">What was pasted last is longer than the command takes, and was not passed on.</p>`}
    <p class="actions"><span role="status" data-session>${sentence(state)}</span>
      ${state.over ? html`<button type="button" ref=${after} onClick=${onAgain}>New session</button>` : html`<button type="button" ref=${after} onClick=${() => { program.current?.end(); finish({}); }}>End the session</button>`}
      <${Copy} text=${() => shown.current?.selection() ?? ""} what="selection">Copy the selection<//>
      <label><input type="checkbox" checked=${aloud} onChange=${(event) => setAloud(event.target.checked)} /> Screen reader</label></p>
  </div>`;
}

function Choice({ choice, found, busy, onStart }) {
  const chosen = found?.pods.find((pod) => pod.name === found.chosen);
  const field = (name, label, list = undefined, hint = "") => html`<label for="exec-${name}">${label}</label>
    <input id="exec-${name}" name=${name} value=${choice[name]} list=${list} placeholder=${hint} required=${name !== "container"} autocomplete="off" autocapitalize="off" spellcheck=${false}
      onChange=${(event) => requery({ [name]: event.target.value.trim() })} />`;
  const start = (event) => {
    event.preventDefault();
    onStart(Object.fromEntries(new FormData(event.target)));
  };
  return html`<form class="choice" onSubmit=${start}>
    ${field("ns", "Namespace")} ${field("pod", "Pod", "exec-pods", "web-7d9c4 or deployment/web")}
    ${field("container", "Container", "exec-containers", chosen?.containers[0] ?? "the first")} ${field("command", "Command")}
    <datalist id="exec-pods">${found?.pods.map((pod) => html`<option key=${pod.name} value=${pod.name} />`)}</datalist>
    <datalist id="exec-containers">${chosen?.containers.map((name) => html`<option key=${name} value=${name} />`)}</datalist>
    <button class="primary" disabled=${busy}>Start</button></form>`;
}

/** Return a word as a shell takes it for one. @param {string} word */
function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** Return the command that forwards the ports of a pod to whoever runs it. */
export function forwarding(ws, edge, choice, ports) {
  const words = ["skerry", "port-forward", edge, choice.pod, ...(ports.length ? ports.map((port) => `:${port}`) : ["8080:80"]), "-n", choice.ns];
  return `kubectl ws ${quoted(ws)}\n${words.map(quoted).join(" ")}`;
}

function PortForward({ ws, edge, choice, found }) {
  if (!choice.pod || !choice.ns) return null;
  const ports = found?.pods.find((pod) => pod.name === found.chosen)?.ports ?? [];
  const command = forwarding(ws, edge, choice, ports);
  return html`<section aria-labelledby="forward"><h2 id="forward">Its ports</h2>
    <p>A page cannot listen on a port of your machine, so that is a command's work${ports.length ? "" : "; write the port of the pod for 80"}:</p>
    <pre class="command" tabindex="0" aria-label="command that forwards ports"><code>${command}</code></pre>
    <p class="actions"><${Copy} text=${() => command} what="command">Copy the command<//></p></section>`;
}

/** @param {{ws: string, edge: string, query: URLSearchParams}} props */
export function Exec({ ws, edge, query }) {
  const choice = { ns: query.get("ns") ?? "", pod: query.get("pod") ?? "", container: query.get("container") ?? "", command: query.get("command") ?? SHELL };
  const [session, setSession] = useState({ turn: 0, asked: null, over: true });
  const about = useMemo(() => (choice.ns ? { ws, edge, namespace: choice.ns, pod: choice.pod } : null), [ws, edge, choice.ns, choice.pod]);
  const { data, error, retry } = useAnswer("pods", about);
  const form = useRef(null);
  // Who came by a link from the list begins with the choice, not at the top of the page.
  useLayoutEffect(() => form.current.querySelector(choice.pod ? "button" : "input").focus(), []);
  const start = ({ ns, pod, container, command }) => {
    const asked = { ws, edge, namespace: ns.trim(), pod: pod.trim(), container: container.trim(), command: wordsOf(command) };
    setSession(({ turn }) => ({ turn: turn + 1, asked, over: false }));
  };
  const again = () => setSession(({ turn, asked }) => ({ turn: turn + 1, asked, over: false }));
  const forbidden = error?.reason === "Forbidden";
  return html`<section class="exec" aria-labelledby="exec"><h2 id="exec">Run a command</h2>
    <p class="quiet">In a container of a pod here, with your own right to <code>edges/exec</code>; the audit log has who ran what. To leave this view ends it.</p>
    ${error && (forbidden ? html`<p class="quiet" role="note">No pods can be offered here: <bdi>${error.message}</bdi></p>` : html`<${Failure} status=${error} onRetry=${retry} />`)}
    <div ref=${form}><${Choice} choice=${choice} found=${error ? null : data} busy=${!session.over} onStart=${start} /></div>
    ${session.asked && html`<${Session} key=${session.turn} asked=${session.asked} onOver=${() => setSession((known) => ({ ...known, over: true }))} onAgain=${again} />`}
    </section><${PortForward} ws=${ws} edge=${edge} choice=${choice} found=${error ? null : data} />`;
}
