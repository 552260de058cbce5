// Pictures. Each one appears next to a table with the same figures.

import { el, svg } from './dom.js';

// ring draws the members on a circle. The line between two members is solid if each has the other in
// view, dashed if only one does, and dotted in red if neither does.
export function ring(all, lists, self, title) {
  const n = all.length, c = 100, r = n === 1 ? 0 : 74;
  const at = all.map((_, i) => {
    const a = -Math.PI / 2 + (2 * Math.PI * i) / n;
    return [c + r * Math.cos(a), c + r * Math.sin(a)];
  });
  const lines = [];
  if (n <= 24) {
    for (let i = 0; i < n; i++) {
      for (let j = i + 1; j < n; j++) {
        const ij = lists(all[i].address, all[j].address), ji = lists(all[j].address, all[i].address);
        const known = [ij, ji].filter((x) => x !== undefined);
        if (known.length === 0) continue;
        const yes = known.filter(Boolean).length;
        lines.push(svg('line', { x1: at[i][0], y1: at[i][1], x2: at[j][0], y2: at[j][1], class: yes === known.length ? '' : yes > 0 ? 'half' : 'none' }));
      }
    }
  }
  const size = n <= 12 ? 17 : n <= 24 ? 11 : 5;
  const xs = at.map((p) => p[0]), ys = at.map((p) => p[1]), pad = size + 6;
  const box = [Math.min(...xs) - pad, Math.min(...ys) - pad];
  const wide = Math.max(...xs) + pad - box[0], high = Math.max(...ys) + pad - box[1];
  const dots = all.map((m, i) => [
    svg('circle', { cx: at[i][0], cy: at[i][1], r: size, class: m.lost ? 'lost' : `f${m.color}` }),
    m.address === self ? svg('circle', { cx: at[i][0], cy: at[i][1], r: size + 3.5, class: 'here' }) : null,
    size > 8 ? svg('text', { x: at[i][0], y: at[i][1], class: m.lost ? 'lost-text' : '' }, m.letter) : null,
  ]);
  return svg('svg', { viewBox: `${box[0]} ${box[1]} ${wide} ${high}`, class: 'ring', role: 'img', 'aria-label': title }, lines, dots);
}

// spark draws a line chart of recent values.
export function spark(values, title) {
  const w = 120, h = 22;
  const most = Math.max(...values, 1e-9);
  const points = values.map((v, i) => `${((i / Math.max(values.length - 1, 1)) * w).toFixed(1)},${(h - 2 - (v / most) * (h - 4)).toFixed(1)}`);
  return svg('svg', { viewBox: `0 0 ${w} ${h}`, class: 'spark', preserveAspectRatio: 'none', role: 'img', 'aria-label': title },
    points.length > 1 ? [
      svg('polygon', { points: `0,${h} ${points.join(' ')} ${w},${h}`, fill: 'currentColor', opacity: '.13' }),
      svg('polyline', { points: points.join(' '), fill: 'none', stroke: 'currentColor', 'stroke-width': '1.4', 'vector-effect': 'non-scaling-stroke' }),
    ] : null);
}

// meter draws a share as a bar, next to the figure itself.
export function meter(share, kind) {
  const width = Math.max(0, Math.min(1, share)) * 100;
  return svg('svg', { class: `meter ${kind || ''}`, viewBox: '0 0 100 8', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    svg('rect', { class: 'back', width: 100, height: 8, rx: 3 }), svg('rect', { class: 'fill', width, height: 8, rx: 3 }));
}

// shardMap draws a square for each shard, with the colour and the letter of its home.
export function shardMap(map, home, title) {
  const fine = map.length > 256;
  return el('div', { class: fine ? 'map fine' : 'map', role: 'img', 'aria-label': title },
    map.map((i, n) => {
      const m = i < 0 ? null : home(i);
      return el('span', { class: m ? `cell m${m.color}` : 'cell nobody', title: `shard ${n}: ${m ? m.address : 'no home yet'}`, 'data-key': `c${n}` }, fine ? null : m ? m.letter : '·');
    }));
}
