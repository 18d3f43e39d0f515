// Signing in: by the link that `skerry console` opens, at the issuer that the hub knows, or by a token
// somebody pastes.

import { html, useEffect, useState } from "../ui.js";
import { issuerName, signIn, signInElsewhere, takenAnswer, takenCode, whereTo } from "../session.js";

// Taken before anything is drawn, so that the address has it for as short as can be.
const here = window.location.pathname === "/console/login";
const answer = here ? takenAnswer() : null;
const code = here ? takenCode() : null;
const first = answer?.proof ?? (code === null ? null : { code });

export function Login() {
  const [problem, setProblem] = useState(answer?.problem ?? "");
  const [busy, setBusy] = useState(first !== null);
  const attempt = async (work, done) => {
    setBusy(true);
    const wrong = await work;
    if (!wrong) return done();
    setBusy(false);
    return setProblem(wrong);
  };
  const prove = (proof) => attempt(signIn(proof), () => window.location.replace(whereTo()));
  useEffect(() => {
    // A link that is opened in a tab which shows this page already only changes the fragment.
    const changed = () => {
      const other = takenCode();
      if (other !== null) prove({ code: other });
    };
    window.addEventListener("hashchange", changed);
    if (first) prove(first);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  const submitted = (event) => {
    event.preventDefault();
    const field = event.target.elements.token;
    prove({ token: field.value.trim() });
    field.value = "";
  };
  const issuer = issuerName();
  return html`<section class="login">
    <h1>Sign in to the hub</h1>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${busy ? html`<p role="status">Signing in…</p>` : html`
      ${issuer && html`<p><button type="button" class="primary" onClick=${() => attempt(signInElsewhere(), () => null)}>Sign in with <bdi>${issuer}</bdi></button></p>`}
      <p>${issuer ? "Or in" : "In"} a terminal that reaches the hub:</p>
      <pre class="command" tabindex="0" aria-label="command"><code>skerry console</code></pre>
      <p>It opens this page with a link that works once, for a minute.</p>
      <form onSubmit=${submitted}>
        <label for="token">Or paste a token of a ServiceAccount</label>
        <input id="token" name="token" type="password" autocomplete="off" spellcheck=${false} required />
        <button type="submit">Sign in</button>
      </form>`}
  </section>`;
}
