// One place that knows the vendored libraries: every other module takes its words from here, so an
// upgrade, or the step from htm to another syntax, touches this file.

import { h, render, Fragment } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export { useCallback, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.js";
export { batch, computed, effect, signal } from "../vendor/signals.js";
export { Fragment, render };

export const html = htm.bind(h);
