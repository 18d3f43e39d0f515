// Copying by a press of a button, which the browser allows a page that is in front of somebody.

import { html } from "./ui.js";
import { announce } from "./announce.js";

/** @param {{text: () => string, what: string, children: any}} props */
export function Copy({ text, what, children }) {
  const copy = () => {
    const copied = text();
    if (!copied) return announce(`There is no ${what} to copy.`);
    return navigator.clipboard.writeText(copied).then(
      () => announce(`Copied the ${what}.`),
      () => announce(`The browser did not let the page copy the ${what}.`),
    );
  };
  return html`<button type="button" onClick=${copy}>${children}</button>`;
}
