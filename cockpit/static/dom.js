// Functions that create elements, and a patch that changes as few nodes as possible. Focus, selection
// and the position of a screen reader are therefore preserved.

const SVG = 'http://www.w3.org/2000/svg';

function make(node, attrs, children) {
  for (const [k, v] of Object.entries(attrs || {})) {
    if (v === undefined || v === null || v === false) continue;
    if (k.startsWith('on')) node[k] = v;
    else node.setAttribute(k, v === true ? '' : String(v));
  }
  for (const c of children.flat(Infinity)) {
    if (c === undefined || c === null || c === false) continue;
    node.append(c instanceof Node ? c : document.createTextNode(String(c)));
  }
  return node;
}

export const el = (tag, attrs, ...children) => make(document.createElement(tag), attrs, children);
export const svg = (tag, attrs, ...children) => make(document.createElementNS(SVG, tag), attrs, children);

// show patches the children of a node to match the given ones.
export function show(node, ...children) {
  const next = document.createDocumentFragment();
  make(next, {}, children);
  patchChildren(node, next);
}

const keyOf = (n) => (n.nodeType === 1 ? n.getAttribute('data-key') : null);

function patchChildren(old, next) {
  const keyed = new Map();
  for (const c of old.childNodes) if (keyOf(c) !== null) keyed.set(keyOf(c), c);
  let at = old.firstChild;
  for (const want of [...next.childNodes]) {
    const key = keyOf(want);
    let have = key !== null ? keyed.get(key) : at && keyOf(at) === null ? at : null;
    if (have && have !== at) old.insertBefore(have, at);
    if (!have || have.nodeName !== want.nodeName) {
      old.insertBefore(want, have || at);
      if (have) { if (have === at) at = at.nextSibling; have.remove(); }
      continue;
    }
    if (have === at) at = at.nextSibling;
    keyed.delete(key);
    patch(have, want);
  }
  while (at) { const gone = at; at = at.nextSibling; gone.remove(); }
}

function patch(old, next) {
  if (old.nodeType !== 1) {
    if (old.nodeValue !== next.nodeValue) old.nodeValue = next.nodeValue;
    return;
  }
  for (const a of [...old.attributes]) if (!next.hasAttribute(a.name)) old.removeAttribute(a.name);
  for (const a of next.attributes) if (old.getAttribute(a.name) !== a.value) old.setAttribute(a.name, a.value);
  if (next.onclick || old.onclick) old.onclick = next.onclick;
  patchChildren(old, next);
}
