// Light or dark: the system's word holds until somebody says otherwise in this browser.

import { signal } from "./ui.js";

const STORED = "skerry.theme";
const NEXT = { system: "dark", dark: "light", light: "system" };

export const theme = signal("system");

function show(value) {
  theme.value = value;
  if (value === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = value;
}

export function restoreTheme() {
  const stored = window.localStorage.getItem(STORED);
  show(stored && stored in NEXT ? stored : "system");
}

export function nextTheme() {
  show(NEXT[theme.value]);
  window.localStorage.setItem(STORED, theme.value);
}
