// Begins the page: nothing but the wiring, so every other module can be loaded by itself.

import { html, render } from "./ui.js";
import { restoreTheme } from "./theme.js";
import { Shell } from "./shell.js";

restoreTheme();
const root = document.getElementById("console");
root.replaceChildren();
render(html`<${Shell} />`, root);
