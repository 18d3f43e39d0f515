// Signing in: by the link that `skerry console` opens, or by a token somebody pastes.

import { html, useEffect, useState } from "../ui.js";
import { signIn, takenCode, whereTo } from "../session.js";

// Taken before anything is drawn, so that the address has it for as short as can be.
const first = window.location.pathname === "/console/login" ? takenCode() : null;

export function Login() {
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(first !== null);
  const prove = async (proof) => {
    setBusy(true);
    const wrong = await signIn(proof);
    if (!wrong) return window.location.replace(whereTo());
    setBusy(false);
    return setProblem(wrong);
  };
  useEffect(() => {
    // A link that is opened in a tab which shows this page already only changes the fragment.
    const follow = (code) => code !== null && prove({ code });
    const changed = () => follow(takenCode());
    window.addEventListener("hashchange", changed);
    follow(first);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  const submitted = (event) => {
    event.preventDefault();
    const field = event.target.elements.token;
    prove({ token: field.value.trim() });
    field.value = "";
  };
  return html`<section class="login">
    <h1>Sign in to the hub</h1>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${busy ? html`<p role="status">Signing in…</p>` : html`
      <p>In a terminal that reaches the hub:</p>
      <pre class="command" tabindex="0" aria-label="command"><code>skerry console</code></pre>
      <p>It opens this page with a link that works once, for a minute.</p>
      <form onSubmit=${submitted}>
        <label for="token">Or paste a token of a ServiceAccount</label>
        <input id="token" name="token" type="password" autocomplete="off" spellcheck=${false} required />
        <button type="submit">Sign in</button>
      </form>`}
  </section>`;
}
