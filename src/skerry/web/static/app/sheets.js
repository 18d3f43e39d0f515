// Style sheets of vendored libraries: fetched with the library, by the first who needs it.

/** Have the style sheet at *href* in the page; resolves once it holds. @param {string} href @returns {Promise<void>} */
export function styled(href) {
  const known = document.querySelector(`link[href="${href}"]`);
  const link = known ?? Object.assign(document.createElement("link"), { rel: "stylesheet", href });
  const loaded = link.sheet
    ? Promise.resolve()
    : new Promise((resolve, reject) => {
        link.addEventListener("load", () => resolve(), { once: true });
        link.addEventListener("error", () => reject(new Error(`${href} could not be loaded`)), { once: true });
      });
  if (!known) document.head.append(link);
  return loaded;
}
