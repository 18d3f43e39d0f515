// What a view says when it has nothing to show: why, and what to do next. Never sample data.

import { html, useEffect, useState } from "./ui.js";
import { connection, heardAt, retry, retryAt } from "./socket.js";
import { Link } from "./router.js";
import { comeBackHere } from "./session.js";
import { age } from "./format.js";
import { now } from "./marks.js";

/** Nothing is there: why, and the command that changes it. */
export function Empty({ title, children, command }) {
  return html`<section class="notice"><h2>${title}</h2>${children && html`<p>${children}</p>`}
    ${command && html`<pre class="command" tabindex="0" aria-label="command"><code>${command}</code></pre>`}</section>`;
}

/** A Status the hub answered with. Forbidden says the missing verb and resource; the rest may be retried. */
export function Failure({ status, onRetry, title = "" }) {
  if (status.reason === "Forbidden") {
    return html`<section class="notice" role="alert"><h2>${title || "You may not see this"}</h2><p>${status.message}</p>
      <p>Ask the workspace's owner for the right, or sign in as somebody who has it: <${Link} to="/console/login">sign in<//>.</p></section>`;
  }
  return html`<section class="notice" role="alert"><h2>${title || (status.reason === "NotFound" ? "Not found" : "That did not work")}</h2>
    <p>${status.message || status.reason}</p>${onRetry && html`<button type="button" onClick=${onRetry}>Try again</button>`}</section>`;
}

/** Grey lines after a moment; what comes at once never flickers. */
export function Loading({ what }) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = window.setTimeout(() => setLate(true), 200);
    return () => window.clearTimeout(timer);
  }, []);
  if (!late) return html`<div hidden data-loading></div>`;
  return html`<div class="skeleton" role="status" data-loading><span class="unseen">loading ${what}</span><i></i><i></i><i></i></div>`;
}

/** The one banner about the connection. */
export function ConnectionBanner() {
  const state = connection.value;
  if (state === "ended") {
    return html`<div class="banner" role="alert"><strong>Your session has ended.</strong> Nothing is asked any more; what you see is ${age((now.value - heardAt.value) / 1000)} old.
      <a class="action" href="/console/login" onClick=${comeBackHere}>Sign in again</a></div>`;
  }
  if (state === "refused") {
    return html`<div class="banner" role="alert"><strong>The hub is newer or older than this page.</strong> <a class="action" href="">Reload</a></div>`;
  }
  if (state === "moved") {
    return html`<div class="banner" role="alert"><strong>The hub has other data now.</strong> What you see is of a store that is not served here any more. <a class="action" href="">Reload</a></div>`;
  }
  if (state !== "lost") return null;
  const wait = Math.max(0, Math.ceil((retryAt.value - now.value) / 1000));
  return html`<div class="banner" role="alert"><strong>Disconnected from the hub.</strong>${" "}
    <span aria-live="off">What you see is ${age((now.value - heardAt.value) / 1000)} old; nothing can be changed. ${wait > 0 ? `Next attempt in ${wait}s.` : "Trying now."}</span>${" "}
    <button type="button" onClick=${retry}>Try now</button></div>`;
}
