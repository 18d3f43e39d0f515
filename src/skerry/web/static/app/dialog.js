// A dialog of the platform: the browser traps the focus and returns it, and Escape closes.

import { html, useLayoutEffect, useId, useRef } from "./ui.js";

export function Dialog({ title, onClose, children }) {
  const element = useRef(null);
  const id = useId();
  useLayoutEffect(() => {
    const before = document.activeElement;
    element.current.showModal();
    return () => before instanceof HTMLElement && before.focus();
  }, []);
  return html`<dialog ref=${element} aria-labelledby=${id} onClose=${onClose}>
    <header class="dialog-head"><h2 id=${id}>${title}</h2><button type="button" aria-label="Close" onClick=${() => element.current.close()}>✕</button></header>
    ${children}
  </dialog>`;
}
