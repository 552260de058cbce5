// Actions that change the cluster. Each opens a dialog that says what will happen, and sends nothing
// before it is confirmed. The result is shown at the top of the page, where screen readers announce
// it.

import { el, show } from './dom.js';
import { clock } from './format.js';

const $ = (id) => document.getElementById(id);

let allowed = false;
export const may = () => allowed;

// check asks whether this client may use actions, and calls changed if the answer differs.
export async function check(changed) {
  let now = false;
  try {
    const res = await fetch('api/v1/actions', { headers: { Accept: 'application/json' } });
    now = res.ok && (await res.json()).allowed === true;
  } catch { /* no answer: the page shows no buttons */ }
  if (now !== allowed) { allowed = now; changed(); }
}

// actButton returns a button that opens a dialog, or null if the client may not use actions. The
// subject completes its name for screen readers.
export function actButton(kind, text, subject, open) {
  if (!allowed) return null;
  return el('button', { type: 'button', class: 'small', 'data-action': kind, 'data-subject': subject, 'aria-haspopup': 'dialog', onclick: open }, `${text}…`, el('span', { class: 'sr' }, ` ${subject}`));
}

let open = null; // the action in the dialog
let busy = false;
let opener = null;

// propose opens the dialog. a has a title, facts as pairs of a name and a text, paragraphs what, the
// name of the button go, a path and the body of the request, which gets the choice if there is one,
// and said, which returns the text of a success.
export function propose(a) {
  if (busy || $('act').open) return;
  open = a;
  opener = document.activeElement;
  $('act-title').textContent = a.title;
  show($('act-text'), el('dl', { class: 'facts-list' }, a.facts.map(([k, v]) => [el('dt', {}, k), el('dd', { class: 'mono' }, v)])), a.what.map((p) => el('p', {}, p)));
  $('act-label').hidden = !a.choices;
  $('act-label-text').textContent = a.choices ? a.label : '';
  show($('act-choice'), (a.choices || []).map(([value, text]) => el('option', { value }, text)));
  if (a.choices) $('act-choice').value = a.choices[0][0];
  $('act-error').textContent = '';
  $('act-go').textContent = a.go;
  wait(false);
  $('act').showModal();
}

function wait(yes) {
  busy = yes;
  for (const id of ['act-go', 'act-cancel', 'act-choice']) $(id).disabled = yes;
  $('act').setAttribute('aria-busy', String(yes));
}

function close() {
  $('act').close();
  open = null;
  if (opener && opener.isConnected) opener.focus(); else $('main').focus();
  opener = null;
}

function tell(kind, text) {
  $('result').dataset.state = kind;
  $('result').textContent = text === '' ? '' : `${clock(Date.now())}  ${text}`;
}

async function send() {
  const a = open;
  const choice = a.choices ? $('act-choice').value : '';
  $('act-error').textContent = '';
  tell('', '');
  wait(true);
  try {
    // A page of another site cannot send this header or this type without the consent of the server.
    const res = await fetch(`api/v1/actions/${a.path}`, {
      method: 'POST', headers: { 'Content-Type': 'application/json', 'X-Concord-Action': '1', Accept: 'application/json' },
      body: JSON.stringify(a.body(choice)), signal: AbortSignal.timeout(35_000),
    });
    const answer = await res.json();
    if (!res.ok) throw new Error(answer.error);
    wait(false);
    close();
    tell('good', a.said(choice));
  } catch (e) {
    wait(false);
    const unknown = e.name === 'TimeoutError' || e.name === 'TypeError' || e.name === 'SyntaxError';
    $('act-error').textContent = unknown ? 'No answer: the outcome is unknown. Check the state before you repeat the action.' : e.message || 'no answer';
    $('act-cancel').focus();
  }
}

$('act-form').addEventListener('submit', (e) => { e.preventDefault(); if (open && !busy) send(); });
$('act-cancel').addEventListener('click', () => { if (!busy) close(); });
// A browser reports a close later, and the dialog may be open again by then.
$('act').addEventListener('close', () => { if (!busy && !$('act').open) open = null; });
$('act').addEventListener('cancel', (e) => { e.preventDefault(); if (!busy) close(); });

// ---- the three actions ----

export const release = (l) => propose({
  title: 'Release this lease?', go: 'Release', path: 'release',
  facts: [['Lease', l.name], ['Holder', l.owner || 'not shown'], ['Token', String(l.token)]],
  what: [`The tenure with token ${l.token} ends, and others can acquire the lease at once. Release it only if the holder has stopped: a running holder may continue for up to three TTLs until it learns of this, and meanwhile only fencing tokens protect its work.`,
    'If another tenure holds the lease by then, nothing happens.'],
  body: () => ({ session: l.session, name: l.name, token: l.token }),
  said: () => `The tenure with token ${l.token} no longer holds lease ${l.name}.`,
});

export const forget = (replicator, name) => propose({
  title: 'Forget this member?', go: 'Forget', path: 'forget',
  facts: [['Member', name], ['Replicator', replicator]],
  what: ['Majorities are counted without this member from now on. Forget it only if it has stopped and will not come back. If it does, it joins as a new member.',
    'If a majority of the counted members does not answer, nothing happens.'],
  body: () => ({ replicator, member: name }),
  said: () => `Replicator ${replicator} no longer counts member ${name}.`,
});

// targets returns the choices for a move of a shard.
export function targets(type, s) {
  const all = type.hosts.filter((a) => a !== s.home).map((a) => [a, a]);
  if (s.home && s.requested !== s.home && type.hosts.includes(s.home)) all.push([s.home, `${s.home} (keep it there)`]);
  if (s.requested) all.push(['', 'any member (withdraw the request)']);
  return all;
}

export const move = (type, s) => propose({
  title: 'Move this shard?', go: 'Move', path: 'move',
  facts: [['Shard', `${s.shard} of ${type.type}`], ['Home', s.home || 'none yet'], ...(s.requested ? [['Requested', s.requested]] : [])],
  what: ['The entities of the shard stop at its home, and start at the member that you choose; their messages wait meanwhile. The request stays in force: the shard returns to this member whenever the member can host it.'],
  label: 'Move to', choices: targets(type, s),
  body: (to) => ({ type: type.type, shard: s.shard, to }),
  said: (to) => to ? `Shard ${s.shard} of ${type.type} was requested to be on ${to}. The list of shards shows when it is there.` : `Shard ${s.shard} of ${type.type} may run on any member again.`,
});
