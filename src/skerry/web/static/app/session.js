// Signing in and out. A code or a token is posted and forgotten: what stays is a cookie that scripts
// cannot read, so nothing secret is ever in storage or in the address.

const HEADERS = { "Content-Type": "application/json", "X-Skerry-Console": "1" };
const NEXT = "skerry.next";

/** Remember where to go after signing in. */
export function comeBackHere() {
  window.sessionStorage.setItem(NEXT, window.location.pathname + window.location.search);
}

/** Return where to go after signing in: a path of the console, whatever the storage says. */
export function whereTo() {
  const stored = window.sessionStorage.getItem(NEXT) ?? "";
  window.sessionStorage.removeItem(NEXT);
  return stored.startsWith("/console/") && !stored.startsWith("/console/login") ? stored : "/console/fleet";
}

/** Take the code out of the address, so that neither history nor a shoulder has it. */
export function takenCode() {
  const code = new URLSearchParams(window.location.hash.slice(1)).get("code");
  if (window.location.hash) window.history.replaceState(null, "", window.location.pathname);
  return code;
}

/** The issuer at which people may sign in, as the page names it; empty where there is none. */
export function issuerName() {
  return document.querySelector("meta[name=skerry-oidc]")?.content ?? "";
}

/**
 * Take what an issuer sent a browser back with out of the address.
 *
 * @returns {{proof?: {code: string, state: string}, problem?: string}|null}
 */
export function takenAnswer() {
  const words = new URLSearchParams(window.location.search);
  if (!words.has("state")) return null;
  window.history.replaceState(null, "", window.location.pathname);
  const state = words.get("state");
  if (words.has("code")) return { proof: { code: words.get("code"), state } };
  return { problem: `${issuerName()} did not sign you in: ${words.get("error_description") ?? words.get("error") ?? "it did not say why"}` };
}

/** Go to the issuer to sign in. @returns {Promise<string>} what went wrong, or nothing */
export async function signInElsewhere() {
  try {
    const answer = await fetch("/console/oidc", { method: "POST", headers: HEADERS });
    const said = await answer.json().catch(() => ({}));
    if (!answer.ok) return said.message ?? `the hub answered ${answer.status}`;
    // Whatever the hub answered: nothing but an address of the web is gone to.
    if (new URL(said.url).protocol !== "https:") return "the hub named no address to sign in at";
    window.location.assign(said.url);
    return "";
  } catch {
    return "the hub cannot be reached";
  }
}

/** Sign in with a code or a token. @param {{code?: string, state?: string, token?: string}} proof @returns {Promise<string>} what went wrong, or nothing */
export async function signIn(proof) {
  try {
    const answer = await fetch("/console/session", { method: "POST", headers: HEADERS, body: JSON.stringify(proof) });
    if (answer.ok) return "";
    const status = await answer.json().catch(() => ({}));
    return status.message ?? `the hub answered ${answer.status}`;
  } catch {
    return "the hub cannot be reached";
  }
}

export async function signOut() {
  await fetch("/console/session", { method: "DELETE", headers: HEADERS }).catch(() => null);
}
