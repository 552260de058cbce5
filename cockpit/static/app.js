// This is the page of a cockpit. It reads the stream and redraws the sections that have changed. It
// sends requests only to the handler that serves it.

import { actButton, check, forget, may, move, release, targets } from './actions.js';
import { el, show } from './dom.js';
import { bytes, clock, count, plural, took } from './format.js';
import { meter, ring, shardMap, spark } from './pictures.js';

const $ = (id) => document.getElementById(id);
const state = { node: {}, health: {}, cluster: { members: [], lost: [], split: [] }, peers: [], replicators: [], sessions: [], singletons: [], types: [], times: [], changes: [], problems: [], events: [] };
const history = { sent: [], updates: [], cpu: [], last: null, lastNode: null };
let offset = 0; // server time minus local time, in milliseconds
const now = () => Date.now() + offset;

// ---- each member has a letter and a colour, derived from its address ----

let labels = new Map();
function label() {
  const all = new Set([...state.cluster.members.map((m) => m.address), ...state.cluster.lost]);
  for (const p of state.peers) for (const a of p.members) all.add(a);
  labels = new Map();
  [...all].sort((a, b) => a.localeCompare(b, 'en', { numeric: true })).forEach((address, i) => {
    const letter = i < 26 ? String.fromCharCode(65 + i) : String(i + 1);
    labels.set(address, { address, letter, color: i % 8, lost: false });
  });
  for (const a of state.cluster.lost) if (labels.has(a)) labels.get(a).lost = true;
}
const known = (address) => labels.get(address) || { address, letter: '?', color: 7, lost: false };
function badge(address) {
  const m = known(address);
  return el('span', { class: `m ${m.lost ? 'away' : 'm' + m.color}`, 'aria-hidden': 'true' }, m.letter);
}
const member = (address) => el('span', { class: 'member' }, badge(address), el('span', { class: 'mono' }, address));
const nth = (n) => n === 1 ? 'oldest' : n + ([, 'st', 'nd', 'rd'][n % 100 > 10 && n % 100 < 14 ? 0 : n % 10] || 'th');
// The bar is logarithmic, because lags range from a few updates to many thousands.
const lagShare = (n, most) => Math.log10(1 + n) / Math.log10(1 + Math.max(most, 10_000));

const tag = (kind, text) => el('span', { class: `tag ${kind}` }, text);

function table(caption, head, rows, hide) {
  return el('div', { class: 'scroll' }, el('table', {},
    el('caption', { class: hide ? 'sr' : '' }, caption),
    el('thead', {}, el('tr', {}, head.map((h) => {
      const [text, cls] = Array.isArray(h) ? h : [h, ''];
      return el('th', { scope: 'col', class: cls }, text);
    }))),
    el('tbody', {}, rows)));
}

// ---- the verdict ----

function drawVerdict() {
  const c = state.cluster;
  const bad = state.problems.filter((p) => p.severity === 'bad').length;
  const warn = state.problems.length - bad;
  const members = c.members.length;
  let text, kind;
  if (c.removed) [text, kind] = ['This member has left its cluster', 'bad'];
  else if (c.cut_off) [text, kind] = ['This member is cut off', 'bad'];
  else if (c.split.length > 0) [text, kind] = ['The cluster is split', 'bad'];
  else if (c.lost.length > 0) [text, kind] = [c.lost.length === 1 ? 'A member is missing' : `${count(c.lost.length)} members are missing`, 'bad'];
  else if (!c.self) [text, kind] = ['This member is currently in no cluster', 'warn'];
  else if (bad > 0) [text, kind] = [plural(bad, 'problem'), 'bad'];
  else if (warn > 0) [text, kind] = [`The cluster is whole, with ${plural(warn, 'warning')}`, 'warn'];
  else [text, kind] = ['The cluster is whole', 'good'];
  $('hero').dataset.state = kind;
  if ($('verdict').textContent !== text) $('verdict').textContent = text;
  const parts = [];
  const asked = state.peers.filter((p) => !p.error);
  const agree = asked.filter((p) => p.members.length === members && p.members.every((a) => c.members.some((m) => m.address === a))).length;
  if (members > 0) parts.push(`${plural(members, 'member')} in view`);
  if (state.peers.length > 0) parts.push(agree === state.peers.length ? `all ${count(agree + 1)} agree` : `${count(agree)} of ${plural(state.peers.length, 'other')} ${agree === 1 ? 'agrees' : 'agree'}`);
  const f = c.fault;
  if (f && f.ongoing) parts.push(`for ${took(now() - Date.parse(f.since))}`);
  else if (f) parts.push(`last fault at ${clock(f.since)}, healed after ${took(f.took_ms)}: ${f.what}`);
  else parts.push('no faults noticed');
  $('verdict-more').textContent = parts.join(' · ');
  show($('problems'), state.problems.length === 0 ? null : el('ul', { class: 'problems' }, state.problems.map((p) =>
    el('li', { 'data-key': p.what }, tag(p.severity, p.severity === 'bad' ? 'fix' : 'check'), el('span', { class: 'what' }, p.what), el('span', { class: 'do' }, p.do)))));
  document.title = `${kind === 'good' ? '' : '● '}${text} – Concord cockpit`;
}

// ---- figures ----

function figure(name, value, unit, under) {
  return el('div', { 'data-key': name }, el('dt', {}, name), el('dd', {}, value, unit ? el('small', {}, ' ' + unit) : null, el('span', { class: 'under' }, under)));
}

function drawFigures() {
  const lags = state.replicators.flatMap((r) => r.lag);
  const most = lags.reduce((a, b) => (b.updates > a.updates ? b : a), { updates: 0 });
  const held = state.sessions.reduce((n, s) => n + s.held, 0);
  const soon = state.sessions.flatMap((s) => s.leases).filter((l) => l.expires).map((l) => Date.parse(l.expires) - now()).sort((a, b) => a - b)[0];
  const near = state.sessions.reduce((n, s) => n + s.near_expiry, 0);
  const keys = state.replicators.reduce((n, r) => n + r.keys, 0);
  const log = state.replicators.reduce((n, r) => n + r.log_bytes, 0);
  const total = state.cluster.members.length + state.cluster.lost.length;
  const rate = history.sent.at(-1) || 0, ups = history.updates.at(-1) || 0, cpu = history.cpu.at(-1);
  show($('figures'),
    figure('Members', `${count(state.cluster.members.length)}`, `of ${count(total)}`, state.cluster.lost.length ? `missing: ${state.cluster.lost.join(', ')}` : 'none missing'),
    figure('Largest lag', count(most.updates), most.updates === 1 ? 'update' : 'updates', most.updates ? `lagging: ${most.member}` : `no member lags; log ${bytes(log)}`),
    figure('Leases held here', count(held), '', near ? `${count(near)} near expiry` : soon === undefined ? 'none expires' : `next expires in ${took(soon)}`),
    figure('Entries', count(keys), '', `${count(Math.round(ups))} updates/s`),
    figure('Sent', bytes(rate) + '/s', '', spark(history.sent, 'bytes sent per second, the last two minutes')),
    figure('Processor', cpu === undefined ? '–' : (cpu * 100).toFixed(1), cpu === undefined ? '' : '% of a core', spark(history.cpu, 'processor use, the last two minutes')));
}

// ---- members ----

function drawMembers() {
  const c = state.cluster;
  const all = [...labels.values()];
  const views = new Map();
  if (c.self) views.set(c.self, new Set(c.members.map((m) => m.address)));
  for (const p of state.peers) if (!p.error && p.self) views.set(p.self, new Set(p.members));
  const lists = (a, b) => (views.has(a) ? views.get(a).has(b) : undefined);
  if (all.length === 0) return show($('members'), el('p', { class: 'empty' }, 'No member is in view yet.'));
  const byAddress = new Map(c.members.map((m) => [m.address, m]));
  const silent = state.peers.filter((p) => p.error);
  const versions = c.members.some((m) => m.app_version);
  const rows = all.map((m) => {
    const in_ = byAddress.get(m.address);
    const what = m.lost ? tag('bad', 'missing') : !in_ ? tag('warn', 'not in view') : in_.self ? tag('good', 'this member') : tag('good', 'in view');
    return el('tr', { 'data-key': m.address }, el('th', { scope: 'row' }, member(m.address)), el('td', {}, what),
      el('td', {}, in_ && in_.rank ? nth(in_.rank) : '–'), el('td', {}, in_ && in_.roles.length ? in_.roles.join(', ') : '–'),
      versions ? el('td', {}, (in_ && in_.app_version) || '–') : null);
  });
  const table1 = table('Members, as seen by this member', ['Member', 'State', 'Age', 'Roles', ...(versions ? ['Version'] : [])], rows, true);
  const from = [...views.keys()].sort();
  const matrix = views.size < 2 || all.length > 24 ? null : table('View of each member', [['View of', ''], ...all.map((m) => [m.letter, 'c'])], from.map((a) =>
    el('tr', { 'data-key': a }, el('th', { scope: 'row' }, member(a)), all.map((b) => {
      const yes = lists(a, b.address);
      return el('td', { class: `c ${yes ? 'seen' : 'unseen'}` }, yes ? '✓' : '✗', el('span', { class: 'sr' }, yes ? ' lists ' : ' does not list ', b.address));
    }))));
  show($('members'), el('div', { class: 'split' }, ring(all, lists, c.self, `${all.length} members; the tables show the view of each`), el('div', {}, table1)),
    matrix ? el('div', { class: 'below' }, matrix) : null,
    silent.length ? el('p', { class: 'facts' }, `No answer from the cockpit of ${silent.map((p) => p.url.replace(/^https?:\/\//, '')).join(', ')}`) : null);
}

// ---- replication ----

function drawReplication() {
  if (state.replicators.length === 0) return show($('replication'), el('p', { class: 'empty' }, 'No replicator is shown.'));
  show($('replication'), state.replicators.map((r) => {
    const most = Math.max(...r.lag.map((l) => l.updates), 1);
    return el('div', { 'data-key': r.name },
      el('p', { class: 'bar' }, el('b', {}, r.name), state.cluster.cut_off ? tag('bad', 'cut off') : r.ready ? tag('good', 'ready') : tag('warn', 'not ready'),
        r.durable ? tag(r.durable.disk === 'working' ? 'good' : 'bad', `disk ${r.durable.disk}`) : null,
        r.to_fill ? tag('warn', `filling, ${count(r.filled)} of ${count(r.to_fill)}`) : null),
      r.lag.length ? table('Updates not yet confirmed by each member', ['Member', ['', ''], ['Lag', 'n']], r.lag.slice().sort((a, b) => a.member.localeCompare(b.member)).map((l) =>
        el('tr', { 'data-key': l.member }, el('th', { scope: 'row' }, member(l.member)), el('td', { class: 'bar-cell' }, meter(lagShare(l.updates, most), l.updates > 1000 ? 'warn' : '')), el('td', { class: 'n' }, count(l.updates)))))
        : el('p', { class: 'empty' }, 'No other member is in view.'),
      r.missing.length ? el('ul', { class: 'plain-list', 'aria-label': 'Counted, but not in view' }, r.missing.map((m) => el('li', { 'data-key': m },
        tag('warn', 'counted, but not in view'), ' ', el('span', { class: 'mono' }, m), ' ', state.cluster.cut_off ? null : actButton('forget', 'Forget', m, () => forget(r.name, m.replace(/ \([^()]*\)$/, '')))))) : null,
      el('p', { class: 'facts' },
        el('span', {}, 'counted ', el('b', {}, count(r.counted))), el('span', {}, 'entries ', el('b', {}, count(r.keys))),
        el('span', {}, 'local updates ', el('b', {}, count(r.updates))), el('span', {}, 'applied ', el('b', {}, count(r.applied))),
        el('span', {}, 'log ', el('b', {}, bytes(r.log_bytes)), r.log_bytes > 0 && r.lag.length && r.lag[0].updates > 0 ? ` kept for ${r.lag[0].member}` : ''),
        el('span', {}, 'repairs ', el('b', {}, count(r.repairs))), el('span', {}, 'diverged ', el('b', {}, count(r.diverged + r.corrupted)))));
  }));
}

// ---- traffic ----

function drawTraffic() {
  const kinds = new Map();
  for (const r of state.replicators) for (const t of r.sent) {
    const k = kinds.get(t.kind) || { messages: 0, bytes: 0 };
    kinds.set(t.kind, { messages: k.messages + t.messages, bytes: k.bytes + t.bytes });
  }
  if (kinds.size === 0) return show($('traffic'), el('p', { class: 'empty' }, 'Nothing has been sent.'));
  const rows = [...kinds].sort((a, b) => b[1].bytes - a[1].bytes);
  const most = rows[0][1].bytes || 1;
  show($('traffic'), table('Sent to other replicas since the start', ['Kind', '', ['Messages', 'n'], ['Bytes', 'n']], rows.map(([kind, t]) =>
    el('tr', { 'data-key': kind }, el('th', { scope: 'row' }, kind.replace(/^replicator\./, '')), el('td', { class: 'bar-cell' }, meter(t.bytes / most)), el('td', { class: 'n' }, count(t.messages)), el('td', { class: 'n' }, bytes(t.bytes)))), true));
}

// ---- leases ----

const leaseKinds = { held: 'good', 'near expiry': 'bad', waiting: 'warn', known: '' };
const pageOfLeases = { items: null, next: '' };

function left(l) {
  if (l.forever) return 'never';
  return l.expires ? took(Date.parse(l.expires) - now()) : '–';
}

function drawLeases() {
  const sessions = state.sessions;
  if (sessions.length === 0) return show($('leases'), el('p', { class: 'empty' }, 'No session is shown.'));
  const list = pageOfLeases.items || sessions.flatMap((s) => s.leases.slice(0, 8));
  const total = sessions.reduce((n, s) => n + s.known, 0);
  const rows = list.map((l) => el('tr', { 'data-key': `${l.session} ${l.name}` },
    el('th', { scope: 'row', class: 'name' }, l.name), el('td', {}, tag(leaseKinds[l.state], l.state), l.waiting ? ` ${count(l.waiting)} waiting` : ''),
    el('td', { class: 'name mono' }, l.owner || '–'), el('td', { class: 'n' }, count(l.token)), el('td', { class: 'n' }, left(l)),
    may() ? el('td', { class: 'n' }, releasable(l) ? actButton('release', 'Release', l.name, () => release(l)) : '–') : null));
  const more = total > list.length || pageOfLeases.items;
  show($('leases'),
    list.length ? table('Leases of this process', ['Lease', 'State', 'Holder', ['Token', 'n'], ['Expires in', 'n'], ...(may() ? [['Action', 'n']] : [])], rows, true) : el('p', { class: 'empty' }, 'This process holds no leases and waits for none.'),
    more ? el('p', { class: 'bar' }, el('span', { class: 'note' }, pageOfLeases.items ? `one page of ${count(total)}` : `the ${list.length} most important of ${count(total)}`),
      el('button', { type: 'button', class: 'small', onclick: () => leasePage(pageOfLeases.next) }, pageOfLeases.items && pageOfLeases.next ? 'Next page' : 'All by name'),
      pageOfLeases.items ? el('button', { type: 'button', class: 'small', onclick: () => { pageOfLeases.items = null; pageOfLeases.next = ''; drawLeases(); } }, 'Most important') : null) : null,
    sessions.map((s) => el('p', { class: 'facts', 'data-key': 'facts ' + s.name },
      el('span', {}, 'session ', el('b', {}, s.name)), el('span', {}, 'granted ', el('b', {}, count(s.granted))), el('span', {}, 'released ', el('b', {}, count(s.released))),
      el('span', {}, 'lost ', el('b', {}, count(Object.values(s.lost).reduce((a, b) => a + b, 0)))), el('span', {}, 'store failures ', el('b', {}, count(s.store_failures))))));
}

const releasable = (l) => l.token > 0 && (l.state === 'held' || l.state === 'near expiry' || l.owner !== '');

// lookUp shows the holder of a lease, read from the lease store.
const looked = { holder: null, at: 0, error: '' };

const holderOf = (session, name) => ask(`api/v1/lease?session=${encodeURIComponent(session)}&name=${encodeURIComponent(name)}`);

// The cockpit adds the session of the node under the name leases.
const mainSession = () => (state.sessions.length === 1 ? state.sessions[0].name : 'leases');

async function lookUp(name) {
  looked.error = '';
  looked.holder = await holderOf(mainSession(), name);
  looked.at = now();
  if (!looked.holder) { looked.error = entries.error; entries.error = ''; drawEntries(); }
  drawLooked();
}

function drawLooked() {
  const h = looked.holder;
  if (!h) return show($('lease-found'), looked.error ? el('p', { class: 'note' }, looked.error) : null);
  const l = { session: mainSession(), name: h.name, owner: h.owner, token: h.token };
  show($('lease-found'), table(`In the lease store at ${clock(looked.at)}`, ['Lease', 'State', 'Holder', ['Token', 'n'], ['Expires within', 'n'], ...(may() ? [['Action', 'n']] : [])], [
    el('tr', {}, el('th', { scope: 'row', class: 'name' }, h.name), el('td', {}, h.held ? tag('good', 'held') : tag('', 'free')), el('td', { class: 'name mono' }, h.owner || '–'),
      el('td', { class: 'n' }, count(h.token)), el('td', { class: 'n' }, !h.held ? '–' : h.forever ? 'never' : took(h.remaining_ms)),
      may() ? el('td', { class: 'n' }, h.held ? actButton('release', 'Release', h.name, () => release(l)) : '–') : null)]));
}

async function leasePage(after) {
  const page = await ask(`api/v1/leases?limit=50&after=${encodeURIComponent(after)}`);
  if (!page) return;
  pageOfLeases.items = page.items;
  pageOfLeases.next = page.next;
  drawLeases();
}

// ---- singletons and shards ----

function drawSingletons() {
  if (state.singletons.length === 0) return show($('singletons'), el('p', { class: 'empty' }, 'No singleton is shown.'));
  show($('singletons'), table('Where each singleton runs', ['Singleton', 'State', 'Host', ['Token', 'n'], ['For', 'n']], state.singletons.map((s) =>
    el('tr', { 'data-key': s.name }, el('th', { scope: 'row', class: 'name' }, s.name),
      el('td', {}, s.state === 'unknown' ? tag('warn', 'no known host') : tag('good', s.state === 'here' ? 'runs here' : 'runs')),
      el('td', {}, s.host ? member(s.host) : '–'), el('td', { class: 'n' }, count(s.token)), el('td', { class: 'n' }, s.since ? took(now() - Date.parse(s.since)) : '–'))), true));
}

function drawShards() {
  if (state.types.length === 0) return show($('shards'), el('p', { class: 'empty' }, 'No sharded type is shown.'));
  show($('shards'), state.types.map((t) => {
    const home = (i) => known(t.homes[i].address);
    const nobody = t.map.filter((i) => i < 0).length;
    return el('div', { 'data-key': t.type },
      el('p', { class: 'bar' }, el('b', {}, t.type), el('span', { class: 'note' }, `${plural(t.shards, 'shard')}, ${plural(t.entities, 'entity', 'entities')} here`),
        t.waiting ? tag('warn', `${plural(t.waiting, 'message')} waiting`) : null, t.map.length < t.shards ? el('span', { class: 'note' }, `showing the first ${count(t.map.length)}`) : null),
      shardMap(t.map, home, `${t.shards} shards by home; the table has the counts`),
      table('Shards by home', ['Home', '', ['Shards', 'n']], [
        ...t.homes.map((h) => el('tr', { 'data-key': h.id }, el('th', { scope: 'row' }, member(h.address)), el('td', { class: 'bar-cell' }, meter(h.shards / t.shards)), el('td', { class: 'n' }, count(h.shards)))),
        ...(nobody ? [el('tr', { 'data-key': 'nobody' }, el('th', { scope: 'row' }, 'no home yet'), el('td', { class: 'bar-cell' }, meter(nobody / t.shards, 'warn')), el('td', { class: 'n' }, count(nobody)))] : []),
      ], true));
  }));
}

// The list of the shards of one type, page by page. It is loaded when it is opened.
const shardList = { open: false, type: '', items: [], next: '', after: '', tokens: new Map(), stale: false };

async function loadShards(after) {
  const type = state.types.some((t) => t.type === shardList.type) ? shardList.type : (state.types[0] || {}).type;
  if (type === undefined) return;
  shardList.stale = false;
  const page = await ask(`api/v1/shards?limit=16&type=${encodeURIComponent(type)}&after=${encodeURIComponent(after)}`);
  if (!page) return;
  Object.assign(shardList, { type, items: page.items, next: page.next, after });
  drawShardList();
}

// token returns the token of the tenure of a shard. That of a shard on another member is read from
// the lease store on request.
function tokenOf(s) {
  if (s.token > 0) return count(s.token);
  const known = shardList.tokens.get(s.lease);
  if (known && known.since === s.since) return known.text;
  if (!s.lease || state.sessions.length === 0) return '–';
  return el('button', { type: 'button', class: 'small', onclick: async () => {
    const h = await holderOf(mainSession(), s.lease);
    shardList.tokens.set(s.lease, { since: s.since, text: !h ? 'no answer' : h.held ? count(h.token) : 'free' });
    drawShardList();
  } }, 'Read', el('span', { class: 'sr' }, ` the token of shard ${s.shard} from the lease store`));
}

function drawShardList() {
  if (state.types.length === 0) return show($('shard-list'));
  const type = state.types.find((t) => t.type === shardList.type) || state.types[0];
  const acts = may() && type.movable;
  show($('shard-list'),
    el('p', { class: 'bar' },
      el('button', { type: 'button', id: 'shard-toggle', 'aria-expanded': String(shardList.open), 'aria-controls': 'shard-list', onclick: () => { shardList.open = !shardList.open; if (shardList.open) loadShards(''); drawShardList(); } }, shardList.open ? 'Hide the list of shards' : 'List the shards'),
      shardList.open && state.types.length > 1 ? el('label', {}, 'Type ', el('select', { id: 'shard-type', onchange: (e) => { shardList.type = e.target.value; loadShards(''); } }, state.types.map((t) => el('option', { value: t.type, selected: t.type === type.type }, t.type)))) : null,
      shardList.open ? [
        el('button', { type: 'button', id: 'shard-first', disabled: shardList.after === '', onclick: () => loadShards('') }, 'First page'),
        el('button', { type: 'button', id: 'shard-next', disabled: shardList.next === '', onclick: () => loadShards(shardList.next) }, 'Next page')] : null,
      may() && shardList.open && !type.movable ? el('span', { class: 'note' }, `Shards of ${type.type} cannot be moved by hand: External is not set, or MaxMoves is -1.`) : null),
    !shardList.open ? null : table(`Shards of ${type.type}, as this member knows them`, [['Shard', 'n'], 'Home', 'State here', ['For', 'n'], ['Token', 'n'], ...(acts ? [['Action', 'n']] : [])], shardList.items.map((s) =>
      el('tr', { 'data-key': `${type.type} ${s.shard}` }, el('th', { scope: 'row', class: 'n' }, s.shard),
        el('td', {}, s.home ? member(s.home) : 'none yet', s.requested && s.requested !== s.home ? el('span', { class: 'note' }, ` requested: ${s.requested}`) : s.requested ? [' ', tag('', 'requested')] : null),
        el('td', {}, s.state), el('td', { class: 'n' }, s.since ? took(now() - Date.parse(s.since)) : '–'), el('td', { class: 'n' }, tokenOf(s)),
        acts ? el('td', { class: 'n' }, targets(type, s).length ? actButton('move', 'Move', `shard ${s.shard} of ${type.type}`, () => move(type, s)) : '–') : null))));
}

// ---- times ----

const kinds = {
  behind: ['Behind until equal', 'How long a member had not confirmed all updates that this member had seen, from the first snapshot with a lag to the first without. Members confirm with heartbeats, and updates that arrive meanwhile count, so each update took less.'],
  singletons: ['Take-over of singletons', 'How long this member knew no host.'],
  shards: ['Take-over of shards', 'How long this member waited for the previous home and for the lease of a shard.'],
  faults: ['Faults until healed', 'How long the cluster was not whole, as this member saw it.'],
};
let timesOpen = false;

function median(list) {
  const s = list.slice().sort((a, b) => a - b), h = s.length >> 1;
  return s.length % 2 ? s[h] : (s[h - 1] + s[h]) / 2;
}

function drawTimes() {
  if (state.times.length === 0) return show($('times'), el('p', { class: 'empty' }, 'No times yet.'));
  const all = state.times.flatMap((t) => t.samples.map((s) => [t.kind, s])).sort((a, b) => Date.parse(b[1].at) - Date.parse(a[1].at));
  show($('times'), table('Times observed while the cockpit was in use; the figures and the pictures are of the last 32', ['Time', '', ['Last', 'n'], ['Median', 'n'], ['Slowest', 'n'], ['Observed', 'n']], state.times.map((t) => {
    const [name, about] = kinds[t.kind] || [t.kind, ''];
    const ms = t.samples.map((s) => s.ms);
    return el('tr', { 'data-key': t.kind }, el('th', { scope: 'row' }, name, el('span', { class: 'about' }, about)),
      el('td', { class: 'spark-cell' }, ms.length > 1 ? spark(ms, `${name}: the last ${ms.length} times; the list has each`) : null),
      ...(ms.length ? [ms.at(-1), median(ms), Math.max(...ms)].map((v) => el('td', { class: 'n' }, took(v))) : ['–', '–', '–'].map((v) => el('td', { class: 'n' }, v))), el('td', { class: 'n' }, count(t.count)));
  })),
  el('p', { class: 'bar below' }, el('button', { type: 'button', id: 'times-toggle', 'aria-expanded': String(timesOpen), 'aria-controls': 'times', onclick: () => { timesOpen = !timesOpen; drawTimes(); } }, timesOpen ? 'Hide the list of times' : 'List the times')),
  timesOpen ? table('Each time, newest first', [['Ended', ''], 'Time', 'Of', ['Took', 'n']], all.map(([kind, s]) =>
    el('tr', { 'data-key': `${kind} ${s.at} ${s.what}` }, el('td', {}, clock(s.at)), el('td', {}, (kinds[kind] || [kind])[0]), el('th', { scope: 'row', class: 'name' }, s.what), el('td', { class: 'n' }, took(s.ms))))) : null);
}

// ---- entries ----

const entries = { items: [], next: '', after: '', at: 0, error: '' };

async function ask(path) {
  try {
    const res = await fetch(path, { headers: { Accept: 'application/json' } });
    const body = await res.json();
    if (!res.ok) throw new Error(body.error);
    entries.error = '';
    return body;
  } catch (e) {
    entries.error = e.message || 'no answer';
    drawEntries();
    return null;
  }
}

const replicator = () => $('replicator').value || (state.replicators[0] || {}).name || '';

async function loadEntries(after) {
  if (state.replicators.length === 0) return;
  entries.at = Date.now();
  const page = await ask(`api/v1/keys?limit=15&replicator=${encodeURIComponent(replicator())}&prefix=${encodeURIComponent($('prefix').value)}&after=${encodeURIComponent(after)}`);
  if (!page) return;
  Object.assign(entries, { items: page.items, next: page.next, after });
  drawEntries();
}

async function openValue(key) {
  const v = await ask(`api/v1/value?replicator=${encodeURIComponent(replicator())}&key=${encodeURIComponent(key)}`);
  if (!v) return;
  $('dialog-title').textContent = v.key;
  $('dialog-text').textContent = v.text + (v.cut ? '\n… truncated' : '');
  $('dialog').showModal();
}

function drawEntries() {
  const names = state.replicators.map((r) => r.name);
  $('replicator-label').hidden = names.length < 2;
  if ($('replicator').options.length !== names.length) show($('replicator'), names.map((n) => el('option', { value: n }, n)));
  $('first').disabled = entries.after === '';
  $('next').disabled = entries.next === '';
  $('entries-note').textContent = entries.error || (entries.items.length ? `${plural(entries.items.length, 'entry', 'entries')} on this page` : 'no entries');
  const changed = new Map(state.changes.filter((c) => c.replicator === replicator()).map((c) => [c.key, c.at]));
  const values = state.node.values;
  show($('entries'), entries.items.length === 0 ? null : table('Entries of this replica', ['Name', 'Type', ['Elements', 'n'], ['Size', 'n'], ['Changed', 'n'], ...(values ? [['Value', 'n']] : [])], entries.items.map((k) => {
    const at = changed.get(k.key) || k.changed;
    return el('tr', { 'data-key': k.key }, el('th', { scope: 'row', class: 'name mono long' }, k.key), el('td', {}, k.type || '–', k.durable ? [' ', tag('', 'durable')] : null),
      el('td', { class: 'n' }, count(k.atoms)), el('td', { class: 'n' }, bytes(k.bytes)), el('td', { class: 'n' }, at ? clock(at) : '–'),
      values ? el('td', { class: 'n' }, k.value ? el('button', { type: 'button', class: 'small', onclick: () => openValue(k.key) }, 'Show', el('span', { class: 'sr' }, ` ${k.key}`)) : '–') : null);
  }), true),
  state.changes.length ? el('p', { class: 'facts' }, 'Recently changed: ', state.changes.slice(0, 6).map((c) => el('span', { class: 'mono', 'data-key': c.replicator + ' ' + c.key }, c.key))) : null);
}

// ---- events and cost ----

const levels = { info: '', warn: 'warn', error: 'bad' };

function drawEvents() {
  show($('events'), state.events.length === 0 ? el('p', { class: 'empty' }, 'No events yet.') : el('ol', { class: 'events', tabindex: '0', 'aria-label': 'Events, newest first' },
    state.events.slice().reverse().map((e) => el('li', { 'data-key': e.seq }, el('time', { datetime: new Date(e.at).toISOString() }, clock(e.at)), el('span', {}, tag(levels[e.level], e.level)), el('span', { class: 'text' }, e.text)))));
}

function drawNode() {
  const n = state.node, c = state.cluster;
  show($('where'), el('b', {}, c.name || 'no cluster'), ', as seen by ', el('b', {}, n.name || c.self || 'this member'), n.name && c.self ? ` at ${c.self}` : '');
  $('cost').textContent = n.heap_bytes === undefined ? '' : `${bytes(n.heap_bytes)} of heap · ${plural(n.goroutines, 'goroutine')} · incarnation ${n.incarnation} · ${plural(n.viewers, 'viewer')} · ${state.health.known ? (state.health.ready ? 'ready' : 'not ready') : 'health not shown'}`;
}

// ---- history ----

function push(list, v) { list.push(v); if (list.length > 240) list.shift(); }

function noteReplicators() {
  const at = now();
  const sent = state.replicators.reduce((n, r) => n + r.sent_bytes, 0), ups = state.replicators.reduce((n, r) => n + r.updates + r.applied, 0);
  const was = history.last;
  history.last = { at, sent, ups };
  if (was && at > was.at) {
    const s = (at - was.at) / 1000;
    push(history.sent, Math.max(0, sent - was.sent) / s);
    push(history.updates, Math.max(0, ups - was.ups) / s);
  }
}

function noteNode() {
  const at = now(), was = history.lastNode;
  history.lastNode = { at, cpu: state.node.cpu_seconds };
  if (was && at > was.at) push(history.cpu, Math.max(0, state.node.cpu_seconds - was.cpu) / ((at - was.at) / 1000));
}

// ---- the stream ----

const draws = {
  cluster: [drawVerdict, drawMembers, drawFigures, drawNode], peers: [drawVerdict, drawMembers], problems: [drawVerdict],
  replicators: [drawReplication, drawTraffic, drawFigures], sessions: [drawLeases, drawFigures], singletons: [drawSingletons],
  types: [drawShards, drawShardList], times: [drawTimes], changes: [drawEntries], events: [drawEvents], node: [drawNode, drawFigures], health: [drawNode],
};
let pending = new Set();
let waiting = false;

function draw() {
  waiting = false;
  label();
  const todo = pending;
  pending = new Set();
  if (todo.has(drawMembers)) for (const f of [drawReplication, drawSingletons, drawShards, drawShardList]) todo.add(f);
  for (const f of todo) f();
}

function later(...functions) {
  for (const f of functions) pending.add(f);
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(draw);
}

let source = null;
function link(kind, text) { $('link').dataset.state = kind; if ($('link-text').textContent !== text) $('link-text').textContent = text; }

function open() {
  if (source) return;
  link('wait', 'connecting');
  source = new EventSource('api/v1/stream');
  for (const name of Object.keys(draws)) {
    source.addEventListener(name, (e) => {
      state[name] = JSON.parse(e.data);
      if (name === 'replicators') { noteReplicators(); if (entries.at === 0) loadEntries(''); }
      if (name === 'node') noteNode();
      if (name === 'types') shardList.stale = true;
      later(...draws[name]);
    });
  }
  source.addEventListener('hello', () => check(() => later(drawLeases, drawLooked, drawShardList, drawReplication)));
  source.addEventListener('at', (e) => { offset = Date.parse(JSON.parse(e.data)) - Date.now(); link('live', 'live'); });
  source.onerror = () => link('lost', source && source.readyState === EventSource.CLOSED ? 'rejected; reload to retry' : 'no connection; retrying');
}

function close() { if (source) { source.close(); source = null; link('wait', 'paused'); } }

// Close the stream 30 seconds after the page moves to the background, so that it costs the node
// nothing.
let resting = 0;
document.addEventListener('visibilitychange', () => {
  clearTimeout(resting);
  if (document.hidden) resting = setTimeout(close, 30_000);
  else open();
});

setInterval(() => {
  if (document.hidden || !source) return;
  later(drawLeases, drawSingletons, drawFigures, drawVerdict, ...(shardList.open ? [drawShardList] : []));
  if (shardList.open && shardList.stale) loadShards(shardList.after);
  const stale = Date.now() - entries.at > 5000 && state.changes.some((c) => Date.parse(c.at) > entries.at + offset);
  if (stale && entries.at > 0) loadEntries(entries.after);
}, 1000);

$('lease-search').addEventListener('submit', (e) => { e.preventDefault(); lookUp($('lease-name').value); });
$('search').addEventListener('submit', (e) => { e.preventDefault(); loadEntries(''); });
$('replicator').addEventListener('change', () => loadEntries(''));
$('first').addEventListener('click', () => loadEntries(''));
$('next').addEventListener('click', () => loadEntries(entries.next));

// ---- light and dark ----

const dark = matchMedia('(prefers-color-scheme: dark)');
function theme(kind) {
  document.documentElement.dataset.theme = kind;
  $('theme').setAttribute('aria-pressed', String(kind === 'dark'));
}
let chosen = null;
try { chosen = localStorage.getItem('theme'); } catch { /* storage is off */ }
theme(chosen || (dark.matches ? 'dark' : 'light'));
dark.addEventListener('change', () => { if (!chosen) theme(dark.matches ? 'dark' : 'light'); });
$('theme').addEventListener('click', () => {
  chosen = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
  try { localStorage.setItem('theme', chosen); } catch { /* storage is off */ }
  theme(chosen);
});

open();
