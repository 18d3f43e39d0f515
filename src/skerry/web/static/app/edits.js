// From the sentence of a smallest edit to a manifest that can be tried. The sentence is the one that
// `skerry explain` prints; what it cannot be read from is not offered to be tried.

const API_VERSIONS = {
  Location: "scheduling.kcp.io/v1alpha1",
  SyncTarget: "workload.kcp.io/v1alpha1",
  Namespace: "v1",
};

/** Return the labels of words as `kubectl label` takes them: "env=prod tier-". @param {string} words */
function labelsOf(words) {
  const labels = {};
  for (const word of words.trim().split(/\s+/)) {
    const [key, value] = word.split("=", 2);
    if (value !== undefined) labels[key] = value;
    else if (key.endsWith("-")) labels[key.slice(0, -1)] = null;
    else return null;
  }
  return labels;
}

/** Tell whether an edit is of the workload's own workspace, not of the inventory's. @param {string} sentence */
export function isOfWorkload(sentence) {
  return sentence.startsWith("label Namespace ");
}

/**
 * Return a manifest, as JSON text, that makes the edit; null where the sentence says something else.
 *
 * @param {string} sentence  such as "label Location bari: env=prod"
 */
export function manifestOf(sentence) {
  const found = /^label (Location|SyncTarget|Namespace) ([^\s:]+): (.+)$/.exec(sentence);
  if (!found) return null;
  const [, kind, name, words] = found;
  const labels = labelsOf(words);
  if (!labels) return null;
  return JSON.stringify({ apiVersion: API_VERSIONS[kind], kind, metadata: { name, labels } }, null, 2);
}
