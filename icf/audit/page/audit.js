/* audit.js: the report of icfold audit.  Reads the JSON in #data; no library, no network.
 *
 * Functions are numbers into flat arrays.  The treemap is drawn on a canvas for the node that is zoomed to and goes only as deep
 * as there are pixels, so that its cost does not depend on the size of the program. */
"use strict";
(() => {
const $ = id => document.getElementById(id);
const D = JSON.parse($("data").textContent);
const S = D.strings;
const el = (tag, cls, text) => {
	const e = document.createElement(tag);
	if (cls) e.className = cls;
	if (text !== undefined) e.textContent = text;
	return e;
};
const sum = (a, f) => a.reduce((s, x) => s + f(x), 0);

/* ---- data ---- */
const undelta = a => { let v = 0; return Int32Array.from(a, d => v += d); };
const N = D.size.length;
const size = Float64Array.from(D.size), leaf = undelta(D.leaf);
const inTree = { scopes: undelta(D.scope), sources: undelta(D.source) };
const tree = {};
for (const k of ["scopes", "sources"])
	tree[k] = { parent: undelta(D[k].parent), name: undelta(D[k].name) };
const reasonOf = (i, mode) => (mode === "all" ? D.why_all : D.why_safe).charCodeAt(i) - 65;
const reasonKey = w => D.reasons[w][0], reasonText = w => D.reasons[w][1];
const W = {};
D.reasons.forEach((r, i) => { W[r[0]] = i; });
const isFunction = i => D.why_all.charCodeAt(i) - 65 !== W.not_a_function;
const saved = { all: new Float64Array(N), safe: new Float64Array(N) };
for (const m of ["all", "safe"])
	for (let i = 0; i < N; i++) {
		const w = reasonOf(i, m);
		if (w === W.folded || w === W.folded_thunk)
			saved[m][i] = size[i] - (w === W.folded_thunk ? D.thunks[i] || 0 : 0);
	}
const unused = new Uint8Array(N);
for (const i of undelta(D.unused.units)) unused[i] = 1;
const groups = D.groups.map(g => {
	let v = 0;
	return { keeper: g[0], all: g[1], safe: g[2], members: g.slice(3).map(d => v += d) };
});
const groupOf = new Map();
groups.forEach((g, k) => g.members.forEach(i => groupOf.set(i, k)));

/* Nodes that only sort others are no part of a name: "vector<>", above all vectors; "123 smaller", see gather(). */
const nameOf = (k, n) => n < tree[k].name.length ? S[tree[k].name[n]] : tree[k].label[n - tree[k].name.length];
const isFamily = (k, n) => n >= tree[k].name.length || (k === "scopes" && S[tree[k].name[n]].endsWith("<>"));
const pathCache = { scopes: [], sources: [] };
function nodePath(k, n, sep) {
	const cache = pathCache[k];
	if (n === 0) return "";
	if (cache[n] === undefined) {
		let above = tree[k].parent[n];
		while (above && isFamily(k, above)) above = tree[k].parent[above];
		const up = nodePath(k, above, sep);
		cache[n] = up ? up + sep + nameOf(k, n) : nameOf(k, n);
	}
	return cache[n];
}
const fullName = i => {
	const p = nodePath("scopes", inTree.scopes[i], "::");
	return p ? p + "::" + S[leaf[i]] : S[leaf[i]];
};
const sourceOf = i => nodePath("sources", inTree.sources[i], "/");

/* ---- figures ---- */
const nf = new Intl.NumberFormat("en-US");
const num = v => nf.format(v);
function bytes(v) {
	const a = Math.abs(v);
	if (a < 10000) return num(v) + " B";
	if (a < 1024 * 1024) return (v / 1024).toFixed(a < 102400 ? 1 : 0) + " KiB";
	return (v / 1048576).toFixed(a < 104857600 ? 2 : 0) + " MiB";
}
const percent = (p, w) => w ? (100 * p / w).toFixed(p / w < .1 ? 2 : 1) + " %" : "0 %";
const plural = (n, one, many) => num(n) + " " + (n === 1 ? one : many);

const state = { mode: D.mode, shade: "twice", tree: "scopes", node: { scopes: 0, sources: 0 }, focus: -1, sort: "saving", down: true, query: "", shown: 50,
	table: "families", tableShown: 25, nearShown: 12, unusedTable: "libraries", unusedShown: 25, listShown: 25, open: new Set() };

function showHead() {
	$("file").textContent = D.file;
	let about = plural(D.functions, "function", "functions") + ", " + bytes(D.code) + " of code";
	if (D.from_debug) about += ", sources from debug information";
	else if (D.from_symbols) about += ", sources from file symbols (" + percent(D.from_symbols, D.functions) + " of the functions)";
	if (D.root) about += ", paths relative to " + D.root;
	$("about").textContent = about;
	const notice = [];
	if (D.in_place) notice.push("Nothing may move in this program, as it was linked: folded functions leave holes, and .text keeps its size.");
	if (D.writable) notice.push("All code is in sections or segments that the program may write to: it stays as it is.");
	if (D.by_address) notice.push("The file has no function names: functions are given by their addresses.");
	if (D.filter) notice.push("Tables are about functions that match " + D.filter + "; the map shows all.");
	$("notice").textContent = notice.join(" ");
	$("notice").classList.toggle("hidden", !notice.length);
	$("foot").textContent = "icfold " + D.version + " · " + D.path + " · groups of --icf=" + D.mode;
}

function showFigures() {
	const t = D[state.mode], o = D[state.mode === "all" ? "safe" : "all"];
	const card = (label, value, note, main) => {
		const c = el("div", "figure" + (main ? " main" : ""));
		c.append(el("div", "label", label), el("div", "value", value), el("div", "note", note));
		return c;
	};
	const u = D.unused;
	$("figures").classList.toggle("six", !u.obstacle);
	$("figures").replaceChildren(
		card("Code that folding saves", bytes(t.saved), percent(t.saved, D.text) + " of .text", true),
		card("Code section (.text)", bytes(D.text), D.in_place ? "keeps its size, with holes" : "then " + bytes(D.text - t.saved)),
		card("Duplicated bytes", bytes(t.duplicated), num(t.folded) + " functions of " + num(D.functions)),
		card("Groups", num(t.groups), t.thunks ? plural(t.thunks, "thunk", "thunks") + ", " + bytes(t.thunk_bytes) : "no thunks"),
		card(state.mode === "all" ? "Of that with --icf=safe" : "With --icf=all", bytes(o.saved), percent(o.saved, D.text) + " of .text"),
		...(u.obstacle ? [] : [card("Never used", bytes(u.bytes), u.functions ? "with folding " + percent(u.saved[state.mode], D.text) : "nothing to remove")]));
	for (const b of $("mode").children) b.setAttribute("aria-pressed", b.dataset.mode === state.mode);
}

/* ---- treemap: the tree ---- */

/* Children, sizes and savings of all nodes of tree K.  Children are nodes (n >= 0) and functions (~i). */
function build(k) {
	const t = tree[k], n = t.parent.length;
	if (t.children) return t;
	t.children = Array.from({ length: n }, () => []);
	const zeros = () => new Array(n).fill(0);
	t.parent = Array.from(t.parent);
	t.size = zeros();
	t.saved = { all: zeros(), safe: zeros() };
	t.unused = zeros();
	t.count = zeros();
	for (let i = 0; i < N; i++) {
		const to = inTree[k][i];
		t.children[to].push(~i);
		t.size[to] += size[i];
		t.count[to]++;
		t.saved.all[to] += saved.all[i];
		t.saved.safe[to] += saved.safe[i];
		t.unused[to] += unused[i] * size[i];
	}
	for (let x = n - 1; x > 0; x--) { /* parents have lower numbers */
		const up = t.parent[x];
		t.size[up] += t.size[x];
		t.count[up] += t.count[x];
		t.saved.all[up] += t.saved.all[x];
		t.saved.safe[up] += t.saved.safe[x];
		t.unused[up] += t.unused[x];
		t.children[up].push(x);
	}
	t.label = [];
	for (let x = 0; x < n; x++) gather(t, x);
	return t;
}

/* The children of node X by size.  Where there are many, those that would be too small to tell apart go together into a node of
 * their own. */
function gather(t, x) {
	const list = t.children[x].sort((a, b) => sizeOf(t, b) - sizeOf(t, a) || a - b);
	if (list.length < 60) return;
	const least = t.size[x] * .004;
	let k = 12;
	while (k < list.length && sizeOf(t, list[k]) >= least) k++;
	if (list.length - k < 30) return;
	const tail = list.splice(k), at = t.children.length;
	t.parent.push(x);
	t.children.push(tail);
	t.label.push(num(tail.length) + " smaller");
	let s = 0, count = 0, all = 0, safe = 0, dead = 0;
	for (const c of tail) {
		s += sizeOf(t, c);
		count += c < 0 ? 1 : t.count[c];
		all += c < 0 ? saved.all[~c] : t.saved.all[c];
		safe += c < 0 ? saved.safe[~c] : t.saved.safe[c];
		dead += c < 0 ? unused[~c] * size[~c] : t.unused[c];
		if (c >= 0) t.parent[c] = at;
	}
	t.size.push(s);
	t.count.push(count);
	t.saved.all.push(all);
	t.saved.safe.push(safe);
	t.unused.push(dead);
	list.splice(list.findIndex(c => sizeOf(t, c) < s) >>> 0, 0, at);
}
const sizeOf = (t, c) => c < 0 ? size[~c] : t.size[c];
/* A node with a single child node says no more than the child: they are shown as one. */
function through(t, n) {
	while (t.children[n].length === 1 && t.children[n][0] >= 0) n = t.children[n][0];
	return n;
}
function labelOf(k, c, from) {
	if (c < 0) return S[leaf[~c]];
	const t = tree[k], sep = k === "scopes" ? "::" : "/";
	let label = nameOf(k, c);
	for (let p = t.parent[c]; p && p !== from && t.children[p].length === 1; p = t.parent[p])
		if (!isFamily(k, p)) label = nameOf(k, p) + sep + label;
	return label;
}

/* ---- treemap: the layout (squarified: Bruls, Huizing, van Wijk 2000) ---- */
function squarify(t, list, total, x, y, w, h, place) {
	let i = 0;
	const scale = w * h / total;
	while (i < list.length && w > 0 && h > 0) {
		const side = Math.min(w, h);
		let area = 0, worst = Infinity, k = i;
		const max = sizeOf(t, list[i]) * scale;
		for (; k < list.length; k++) {
			const a = sizeOf(t, list[k]) * scale, next = area + a;
			const bad = Math.max(side * side * max / (next * next), next * next / (side * side * a));
			if (bad > worst) break;
			worst = bad;
			area = next;
		}
		const thick = area / side;
		let at = 0;
		for (; i < k; i++) {
			const len = sizeOf(t, list[i]) * scale / thick;
			if (w >= h) place(list[i], x, y + at, thick, len);
			else place(list[i], x + at, y, len, thick);
			at += len;
		}
		if (w >= h) { x += thick; w -= thick; } else { y += thick; h -= thick; }
		if (Math.max(w, h) < 1) return;
	}
}

const canvas = $("canvas"), ctx = canvas.getContext("2d");
let tiles = [];   /* of the current level: { c, x, y, w, h } */
let deep = [];    /* everything drawn, parents before children */
let colors = {};

function readColors() {
	const css = getComputedStyle(document.documentElement), c = {};
	for (const k of ["tile", "tile-text", "kept", "dup", "dead", "frame", "frame-text", "surface", "focus", "text"]) c[k] = css.getPropertyValue("--" + k).trim();
	const rgb = h => [1, 3, 5].map(i => parseInt(h.slice(i, i + 2), 16));
	const a = rgb(c.tile);
	c.ramps = {};
	for (const [shade, end] of [["twice", rgb(c.dup)], ["unused", rgb(c.dead)]])
		c.ramps[shade] = Array.from({ length: 33 }, (_, i) => "rgb(" + a.map((v, j) => Math.round(v + (end[j] - v) * i / 32)).join(",") + ")");
	colors = c;
}
/* Mixed nodes show small shares, too: the ramp goes by the root of the share. */
const rampColor = share => colors.ramps[state.shade][Math.min(32, Math.round(32 * Math.sqrt(share)))];
/* The bytes of node N that the map is about. */
const shaded = (t, n) => state.shade === "unused" ? t.unused[n] : t.saved[state.mode][n];
function fillOf(t, c) {
	if (c < 0 && state.shade === "unused") return unused[~c] ? colors.dead : colors.tile;
	if (c < 0) {
		const w = reasonOf(~c, state.mode);
		return w === W.folded || w === W.folded_thunk ? colors.dup : w === W.kept ? colors.kept : colors.tile;
	}
	return rampColor(t.size[c] ? shaded(t, c) / t.size[c] : 0);
}

const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", Arial, sans-serif';
const BOLD = "600 " + FONT;
const widths = new Map();
function charWidth(font) {
	if (!widths.has(font)) { ctx.font = font; widths.set(font, ctx.measureText("abcdefghijklmnopqrstuvwxyz_:").width / 28); }
	return widths.get(font);
}
/* TEXT cut so that it fits W; empty when less than four letters would. */
function fitText(text, w, font) {
	ctx.font = font;
	if (text.length * charWidth(font) * .75 < w && ctx.measureText(text).width <= w) return text;
	let lo = 0, hi = Math.min(text.length, Math.ceil(w / (charWidth(font) * .4)));
	while (lo < hi) {
		const mid = (lo + hi + 1) >> 1;
		if (ctx.measureText(text.slice(0, mid) + "…").width <= w) lo = mid; else hi = mid - 1;
	}
	return lo < 4 ? "" : text.slice(0, lo) + "…";
}
/* Black or white, whichever reads better on this colour. */
const inks = new Map();
function inkOn(fill) {
	if (!inks.has(fill)) {
		const v = fill[0] === "#" ? [1, 3, 5].map(i => parseInt(fill.slice(i, i + 2), 16)) : fill.match(/\d+/g).map(Number);
		const lin = v.map(x => (x /= 255) <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4);
		const l = .2126 * lin[0] + .7152 * lin[1] + .0722 * lin[2];
		inks.set(fill, (l + .05) / .05 > 1.05 / (l + .05) ? "#10151c" : "#ffffff");
	}
	return inks.get(fill);
}

function drawTile(k, t, c, x, y, w, h, depth, from) {
	const x0 = Math.round(x), y0 = Math.round(y), x1 = Math.round(x + w), y1 = Math.round(y + h);
	const pw = x1 - x0, ph = y1 - y0;
	if (pw < 1 || ph < 1) return;
	const gap = pw > 3 && ph > 3 ? 1 : 0;
	deep.push({ c, x: x0, y: y0, w: pw, h: ph, depth });
	const inner = c >= 0 ? through(t, c) : c;
	const head = 18;
	if (inner >= 0 && pw > 46 && ph > 44 && depth < 6 && t.children[inner].length > 1) {
		ctx.fillStyle = colors.frame;
		ctx.fillRect(x0, y0, pw - gap, ph - gap);
		const fill = fillOf(t, inner);
		ctx.fillStyle = fill;
		ctx.fillRect(x0, y0, pw - gap, 3);
		ctx.fillStyle = colors["frame-text"];
		const label = fitText(labelOf(k, inner, from), pw - 12, BOLD);
		ctx.font = BOLD;
		if (label) ctx.fillText(label, x0 + 5, y0 + 14);
		const b = label ? head : 5;
		squarify(t, t.children[inner], t.size[inner], x0 + 3, y0 + b, pw - 5 - gap, ph - b - 2 - gap,
			(d, a, e, f, g) => drawTile(k, t, d, a, e, f, g, depth + 1, inner));
		return;
	}
	const fill = fillOf(t, inner);
	ctx.fillStyle = fill;
	ctx.fillRect(x0, y0, pw - gap, ph - gap);
	if (pw > 40 && ph > 17) {
		const font = inner >= 0 ? BOLD : FONT;
		const label = fitText(labelOf(k, inner, from), pw - 9, font);
		if (label) {
			ctx.font = font;
			ctx.fillStyle = inkOn(fill);
			ctx.fillText(label, x0 + 4, y0 + 13);
			if (ph > 32 && pw > 60) {
				ctx.globalAlpha = .72;
				const note = fitText(bytes(sizeOf(t, inner)), pw - 9, FONT);
				ctx.font = FONT;
				if (note) ctx.fillText(note, x0 + 4, y0 + 27);
				ctx.globalAlpha = 1;
			}
		}
	}
}

function drawMap() {
	const k = state.tree, t = build(k), box = canvas.parentElement.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
	const w = Math.floor(box.width), h = Math.floor(box.height);
	canvas.width = Math.round(w * ratio);
	canvas.height = Math.round(h * ratio);
	ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
	ctx.textBaseline = "alphabetic";
	ctx.fillStyle = colors.surface;
	ctx.fillRect(0, 0, w, h);
	tiles = [];
	deep = [];
	const n = state.node[k];
	if (t.size[n] > 0)
		squarify(t, t.children[n], t.size[n], 0, 0, w + 1, h + 1, (c, x, y, tw, th) => {
			tiles.push({ c, x, y, w: tw, h: th });
			drawTile(k, t, c, x, y, tw, th, 0, n);
		});
	const f = tiles[state.focus];
	if (f && document.activeElement === canvas) {
		ctx.strokeStyle = colors.surface;
		ctx.lineWidth = 5;
		ctx.strokeRect(f.x + 2, f.y + 2, Math.max(1, f.w - 5), Math.max(1, f.h - 5));
		ctx.strokeStyle = colors.text;
		ctx.lineWidth = 2.5;
		ctx.strokeRect(f.x + 2, f.y + 2, Math.max(1, f.w - 5), Math.max(1, f.h - 5));
	}
}

function showCrumbs() {
	const k = state.tree, t = build(k), chain = [];
	for (let n = state.node[k]; n; n = t.parent[n]) chain.unshift(n);
	chain.unshift(0);
	const nav = $("crumbs");
	nav.replaceChildren();
	chain.forEach((n, i) => {
		if (i) nav.append(el("span", "sep", k === "scopes" ? "::" : "/"));
		const b = el("button", "", n ? nameOf(k, n) : D.file);
		b.type = "button";
		if (i + 1 === chain.length) b.setAttribute("aria-current", "true");
		else b.onclick = () => zoom(n);
		nav.append(b);
	});
	const n = state.node[k];
	nav.append(el("span", "of", bytes(t.size[n]) + " in " + plural(t.count[n], "function", "functions") + ", " + bytes(shaded(t, n)) +
		" of it " + (state.shade === "unused" ? "never used" : "duplicated") + " (" + percent(shaded(t, n), t.size[n]) + ")"));
	for (const b of $("tree").children) b.setAttribute("aria-pressed", b.dataset.tree === k);
}

function describe(c) {
	const t = tree[state.tree];
	if (c < 0) {
		const i = ~c, g = groupOf.get(i), lines = [bytes(size[i]) + " · " + reasonText(reasonOf(i, state.mode))];
		if (unused[i]) lines.push("never used");
		if (g !== undefined) lines.push("one of " + groups[g].members.length + " identical functions" + (saved[state.mode][i] ? ", saves " + bytes(saved[state.mode][i]) : ""));
		const src = sourceOf(i);
		if (src) lines.push(src);
		return { name: fullName(i), lines };
	}
	const n = through(t, c);
	return { name: nodePath(state.tree, n, state.tree === "scopes" ? "::" : "/"),
		lines: [bytes(t.size[n]) + " in " + plural(t.count[n], "function", "functions"),
			bytes(t.saved[state.mode][n]) + " duplicated (" + percent(t.saved[state.mode][n], t.size[n]) + ")",
			...(t.unused[n] ? [bytes(t.unused[n]) + " never used (" + percent(t.unused[n], t.size[n]) + ")"] : [])] };
}
function speak(c) {
	const d = describe(c);
	$("spoken").textContent = d.name + ", " + d.lines.join(", ");
}
function showTip(c, x, y) {
	const tip = $("tip"), d = describe(c), map = $("map");
	tip.replaceChildren(el("b", "", d.name), ...d.lines.map(l => { const s = el("span", "", l); s.style.display = "block"; return s; }));
	tip.classList.remove("hidden");
	const w = tip.offsetWidth, h = tip.offsetHeight;
	tip.style.left = Math.max(0, Math.min(x + 14, map.clientWidth - w)) + "px";
	tip.style.top = (y + 18 + h > map.clientHeight && y > h + 12 ? y - h - 10 : y + 18) + "px";
}
const hideTip = () => $("tip").classList.add("hidden");

function zoom(n) {
	const k = state.tree, old = state.node[k], t = build(k);
	state.node[k] = n;
	/* Going out puts the focus on what one comes from. */
	let from = old;
	while (from && t.parent[from] !== n) from = t.parent[from];
	hideTip();
	state.focus = -1;
	showCrumbs();
	drawMap();
	state.focus = Math.max(0, from ? tiles.findIndex(f => f.c === from) : 0);
	drawMap();
	if (tiles[state.focus]) speak(tiles[state.focus].c);
}
function enter(c) {
	if (c >= 0) {
		const t = tree[state.tree], n = through(t, c);
		zoom(n);
		return;
	}
	const g = groupOf.get(~c);
	if (g !== undefined) showGroup(g);
}
function out() {
	const k = state.tree, t = tree[k];
	let n = state.node[k];
	if (!n) return;
	do n = t.parent[n]; while (n && t.children[n].length === 1);
	zoom(n);
}
const hit = (list, x, y) => { for (let i = list.length - 1; i >= 0; i--) { const f = list[i]; if (x >= f.x && x < f.x + f.w && y >= f.y && y < f.y + f.h) return i; } return -1; };
const pointer = e => { const b = canvas.getBoundingClientRect(); return [e.clientX - b.left, e.clientY - b.top]; };

canvas.addEventListener("mousemove", e => {
	const [x, y] = pointer(e), i = hit(deep, x, y);
	if (i < 0) hideTip(); else showTip(deep[i].c, x, y);
});
canvas.addEventListener("mouseleave", hideTip);
canvas.addEventListener("click", e => {
	const [x, y] = pointer(e), top = hit(tiles, x, y), d = hit(deep, x, y);
	if (top < 0) return;
	state.focus = top;
	/* A function that belongs to a group leads to the group; anything else one level in. */
	if (d >= 0 && deep[d].c < 0 && (tiles[top].c < 0 || deep[d].w * deep[d].h > 2500)) {
		if (groupOf.has(~deep[d].c)) { enter(deep[d].c); return; }
	}
	if (tiles[top].c >= 0) enter(tiles[top].c); else drawMap();
});
canvas.addEventListener("focus", () => { if (state.focus < 0 && tiles.length) state.focus = 0; drawMap(); if (tiles[state.focus]) speak(tiles[state.focus].c); });
canvas.addEventListener("blur", () => { hideTip(); drawMap(); });
canvas.addEventListener("keydown", e => {
	const dir = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key], f = tiles[state.focus];
	if (e.key === "Escape" || e.key === "Backspace") out();
	else if (e.key === "Enter" || e.key === " ") { if (f) enter(f.c); }
	else if (e.key === "Home" || e.key === "End") state.focus = e.key === "Home" ? 0 : tiles.length - 1;
	else if (dir && f) {
		/* The nearest tile in that direction, by its centre, drifting sideways as little as possible. */
		const cx = f.x + f.w / 2, cy = f.y + f.h / 2;
		let best = -1, least = Infinity;
		tiles.forEach((o, i) => {
			const dx = Math.max(o.x - (f.x + f.w), f.x - (o.x + o.w), 0), dy = Math.max(o.y - (f.y + f.h), f.y - (o.y + o.h), 0);
			const ahead = dir[0] ? (o.x + o.w / 2 - cx) * dir[0] : (o.y + o.h / 2 - cy) * dir[1];
			const past = dir[0] ? (dir[0] > 0 ? o.x >= f.x + f.w - 1 : o.x + o.w <= f.x + 1) : (dir[1] > 0 ? o.y >= f.y + f.h - 1 : o.y + o.h <= f.y + 1);
			if (i === state.focus || !past || ahead <= 0) return;
			const cost = (dir[0] ? dx + 4 * dy : dy + 4 * dx) + .01 * (Math.abs(o.x - f.x) + Math.abs(o.y - f.y));
			if (cost < least) { least = cost; best = i; }
		});
		if (best >= 0) state.focus = best;
	} else return;
	e.preventDefault();
	drawMap();
	const g = tiles[state.focus];
	if (g) {
		speak(g.c);
		showTip(g.c, g.x + Math.min(g.w / 2, 40), g.y + Math.min(g.h / 2, 30));
	}
});

function showLegend() {
	const key = (color, text) => { const s = el("span", "key"), i = el("i"); i.style.background = color; s.append(i, text); return s; };
	const ramp = el("span", "key"), bar = el("i", "ramp");
	const dead = state.shade === "unused";
	bar.style.background = "linear-gradient(90deg," + [0, 8, 16, 24, 32].map(i => colors.ramps[state.shade][i]).join(",") + ")";
	ramp.append(bar, dead ? "share of what is never used" : "share of duplicates");
	const keys = el("span", "key");
	keys.style.marginLeft = "auto";
	keys.innerHTML = "<kbd>arrows</kbd> move <kbd>Enter</kbd> zoom in <kbd>Esc</kbd> zoom out";
	$("legend").replaceChildren(...(dead ? [key(colors.dead, "never used"), key(colors.tile, "used")] :
		[key(colors.dup, "duplicate, folded"), key(colors.kept, "kept for others"), key(colors.tile, "stays")]), ramp, keys);
}

/* TEXT into NODE, with places to break lines at: names are long and have no spaces. */
function soft(node, text) {
	text.split(/(?<=::|[</])/).forEach((part, i) => {
		if (i) node.append(document.createElement("wbr"));
		node.append(part);
	});
	return node;
}

/* ---- groups ---- */
const texts = [];
const searchText = k => texts[k] || (texts[k] = groups[k].members.map(fullName).join("\n").toLowerCase());
function visibleGroups() {
	const words = state.query.toLowerCase().split(/\s+/).filter(Boolean);
	const list = groups.map((_, k) => k).filter(k => words.every(w => searchText(k).includes(w)));
	const s = state.down ? -1 : 1, m = state.mode;
	const by = {
		saving: (a, b) => groups[a][m] - groups[b][m],
		count: (a, b) => groups[a].members.length - groups[b].members.length,
		size: (a, b) => size[groups[a].keeper] - size[groups[b].keeper],
		name: (a, b) => { const x = fullName(groups[a].keeper), y = fullName(groups[b].keeper); return x < y ? -1 : x > y ? 1 : 0; },
	}[state.sort];
	return list.sort((a, b) => s * by(a, b) || groups[b][m] - groups[a][m] || a - b);
}
function marked(node, text) {
	const words = state.query.toLowerCase().split(/\s+/).filter(Boolean), low = text.toLowerCase();
	const on = new Uint8Array(text.length);
	for (const w of words)
		for (let i = low.indexOf(w); i >= 0; i = low.indexOf(w, i + 1)) on.fill(1, i, i + w.length);
	for (let i = 0; i < text.length;) {
		let k = i;
		while (k < text.length && on[k] === on[i]) k++;
		soft(on[i] ? node.appendChild(el("mark")) : node, text.slice(i, k));
		i = k;
	}
}
function memberRow(k) {
	const tr = el("tr", "members"), td = el("td"), ul = el("ul");
	td.colSpan = 4;
	const g = groups[k];
	g.members.slice(0, 400).forEach(i => {
		const li = el("li", "mono");
		marked(li, fullName(i));
		const src = sourceOf(i), what = i === g.keeper ? "kept" : reasonOf(i, state.mode) === W.folded_thunk ? "thunk" : saved[state.mode][i] ? "" : "stays";
		if (what || (src && src !== "(not known)")) li.append(el("span", "tag", [what, src === "(not known)" ? "" : src].filter(Boolean).join(" · ")));
		ul.append(li);
	});
	if (g.members.length > 400) ul.append(el("li", "muted", num(g.members.length - 400) + " more"));
	td.append(ul);
	tr.append(td);
	return tr;
}
let listed = [];
function showGroups() {
	listed = visibleGroups();
	const body = $("group-rows"), rows = [], top = Math.max(1, ...groups.map(g => g[state.mode]));
	for (const k of listed.slice(0, state.shown)) {
		const g = groups[k], tr = el("tr", "group"), s = el("td", "bar", num(g[state.mode])), name = el("td", "name mono"), b = el("button", "mono");
		tr.dataset.group = k;
		s.style.setProperty("--share", g[state.mode] / top);
		b.type = "button";
		marked(b, fullName(g.keeper));
		b.setAttribute("aria-expanded", state.open.has(k));
		name.append(b);
		tr.append(s, el("td", "", num(g.members.length)), el("td", "", num(size[g.keeper])), name);
		rows.push(tr);
		if (state.open.has(k)) rows.push(memberRow(k));
	}
	body.replaceChildren(...rows);
	$("groups-count").textContent = state.query ? num(listed.length) + " of " + num(groups.length) + " match, " + bytes(sum(listed, k => groups[k][state.mode])) :
		num(groups.length) + ", " + bytes(sum(groups, g => g[state.mode]));
	for (const th of document.querySelectorAll("#group-table th"))
		if (th.dataset.sort === state.sort) th.setAttribute("aria-sort", state.down ? "descending" : "ascending");
		else th.removeAttribute("aria-sort");
	more("group-more", Math.min(state.shown, listed.length), listed.length, n => { state.shown += n; showGroups(); }, 200);
}
function more(id, shown, total, fn, step) {
	const box = $(id);
	box.replaceChildren();
	box.classList.toggle("hidden", shown >= total && total > 0);
	if (shown < total) {
		const b = el("button", "", "Show " + num(Math.min(step, total - shown)) + " more");
		b.type = "button";
		b.onclick = () => fn(step);
		box.append(b, el("span", "muted small", num(shown) + " of " + num(total)));
	} else if (!total) box.append(el("span", "muted", "Nothing here."));
}
function showGroup(k) {
	state.query = $("search").value = "";
	state.open.add(k);
	const at = visibleGroups().indexOf(k);
	if (at >= state.shown) state.shown = at + 20;
	showGroups();
	const row = document.querySelector('tr[data-group="' + k + '"]');
	if (row) {
		row.scrollIntoView({ block: "center" });
		row.querySelector("button").focus({ preventScroll: true });
	}
}
$("group-rows").addEventListener("click", e => {
	const tr = e.target.closest("tr.group");
	if (!tr) return;
	const k = Number(tr.dataset.group);
	const open = !state.open.delete(k);
	if (open) state.open.add(k);
	tr.querySelector("button").setAttribute("aria-expanded", open);
	if (open) tr.after(memberRow(k)); else tr.nextElementSibling.remove();
});
document.querySelector("#group-table thead").addEventListener("click", e => {
	const th = e.target.closest("th");
	if (!th) return;
	const s = th.dataset.sort;
	state.down = s === state.sort ? !state.down : s !== "name";
	state.sort = s;
	showGroups();
});
let pending = 0;
$("search").addEventListener("input", e => {
	state.query = e.target.value;
	state.shown = 50;
	clearTimeout(pending);
	pending = setTimeout(showGroups, 60);
});
/* "/" goes to the search, as on the page of several files. */
document.addEventListener("keydown", e => {
	if (e.key === "/" && !e.ctrlKey && !e.metaKey && !e.altKey && document.activeElement.tagName !== "INPUT") {
		e.preventDefault();
		$("search").focus();
	}
});

/* ---- the other tables ---- */
const TABLES = [["families", "Templates"], ["namespaces", "Namespaces"], ["libraries", "Libraries"], ["directories", "Directories"], ["files", "Files"], ["compilation_units", "Units"]];
/* The buttons of box ID for those of TABLES that have rows; SHOWN tells which is pressed, CHOOSE presses one. */
function tabsOf(id, tables, shown, choose) {
	$(id).replaceChildren(...TABLES.filter(([k]) => tables[k].length).map(([k, text]) => {
		const b = el("button", "", text);
		b.type = "button";
		b.dataset.table = k;
		b.setAttribute("aria-pressed", k === shown);
		b.onclick = () => choose(k);
		return b;
	}));
}
/* TABLE, or if it has no rows the first one that has. */
const tableWithRows = (tables, table) => tables[table].length ? table : (TABLES.find(([k]) => tables[k].length) || [table])[0];
function showTabs() {
	state.table = tableWithRows(D.tables, state.table);
	tabsOf("tabs", D.tables, state.table, k => { state.table = k; state.tableShown = 25; showTabs(); showTable(); });
}
function showTable() {
	const col = state.mode === "all" ? 3 : 4, rows = D.tables[state.table].slice().sort((a, b) => b[col] - a[col]);
	const top = rows.length ? Math.max(1, rows[0][col]) : 1;
	$("dimension-rows").replaceChildren(...rows.slice(0, state.tableShown).map(r => {
		const tr = el("tr"), s = el("td", "bar", num(r[col]));
		s.style.setProperty("--share", r[col] / top);
		tr.append(s, el("td", "", num(r[1])), el("td", "", num(r[2])), soft(el("td", "name mono"), S[r[0]]));
		return tr;
	}));
	more("dimension-more", Math.min(state.tableShown, rows.length), rows.length, n => { state.tableShown += n; showTable(); }, 50);
}
function showUnused() {
	const u = D.unused, rows = u.obstacle ? [] : u.tables[state.unusedTable = tableWithRows(u.tables, state.unusedTable)];
	$("unused").classList.toggle("hidden", !u.obstacle && !u.functions);
	$("shade").classList.toggle("hidden", !u.functions);
	$("unused-functions").closest(".panel").classList.toggle("hidden", !u.functions);
	$("unused-table").classList.toggle("hidden", !rows.length);
	if (u.obstacle) {
		$("unused-saves").textContent = "It is not known what is used: " + u.obstacle + ".";
		$("unused-more").classList.add("hidden");
		return;
	}
	$("unused-count").textContent = plural(u.functions, "function", "functions") + ", " + bytes(u.bytes);
	$("unused-saves").textContent = "Removing them (--gc-functions) saves " + bytes(u.saved.none) + ", " + percent(u.saved.none, D.text) + " of .text; with folding (--icf=" + state.mode + ") " +
		bytes(u.saved[state.mode]) + ", " + percent(u.saved[state.mode], D.text) + ".";
	tabsOf("unused-tabs", u.tables, state.unusedTable, k => { state.unusedTable = k; state.unusedShown = 25; showUnused(); });
	const top = rows.length ? Math.max(1, ...rows.map(r => r[2])) : 1;
	const bar = (v, most) => { const s = el("td", "bar dead", num(v)); s.style.setProperty("--share", v / most); return s; };
	$("unused-rows").replaceChildren(...rows.slice(0, state.unusedShown).map(r => {
		const tr = el("tr");
		tr.append(bar(r[2], top), el("td", "", num(r[1])), el("td", "", num(r[4])), soft(el("td", "name mono"), S[r[0]]));
		return tr;
	}));
	more("unused-more", Math.min(state.unusedShown, rows.length), rows.length, n => { state.unusedShown += n; showUnused(); }, 50);
	const largest = u.list.length ? Math.max(1, ...u.list.map(i => size[i])) : 1;
	$("unused-list").replaceChildren(...u.list.slice(0, state.listShown).map(i => {
		const tr = el("tr"), name = soft(el("td", "name mono"), fullName(i)), src = sourceOf(i);
		if (src && src !== "(not known)") name.append(el("span", "tag", src));
		tr.append(bar(size[i], largest), name);
		return tr;
	}));
	more("unused-list-more", Math.min(state.listShown, u.list.length), u.list.length, n => { state.listShown += n; showUnused(); }, 100);
}
function showReasons() {
	const count = {}, total = {};
	for (let i = 0; i < N; i++) {
		const w = reasonOf(i, state.mode);
		count[w] = (count[w] || 0) + 1;
		total[w] = (total[w] || 0) + size[i];
	}
	const list = Object.keys(count).map(Number).sort((a, b) => total[b] - total[a]), all = sum(list, w => total[w]);
	/* One large share would leave nothing to see of the others: bars are on a root scale. */
	const top = Math.sqrt(Math.max(1, ...list.map(w => total[w])));
	$("reasons").replaceChildren(...list.map(w => {
		const key = reasonKey(w), r = el("div", "reason" + (key === "folded" || key === "folded_thunk" ? " dup" : key === "kept" ? " kept" : ""));
		const track = el("div", "track"), bar = el("i");
		bar.style.width = (100 * Math.sqrt(total[w]) / top).toFixed(2) + "%";
		track.append(bar);
		r.append(el("div", "", reasonText(w)), el("div", "figures-of", num(count[w]) + " · " + bytes(total[w]) + " · " + percent(total[w], all)), track);
		r.dataset.reason = key;
		return r;
	}));
}
function showNear() {
	$("near-count").textContent = num(D.n_near);
	$("near").replaceChildren(...D.near.slice(0, state.nearShown).map(([saving, count, body, kind, off, places, members]) => {
		const li = el("li"), line = el("div", "line"), ol = el("ol");
		line.append(el("b", "", bytes(saving)), el("span", "muted", count + " × " + bytes(body) + ", differ in " + (/^[ao]/.test(kind) ? "an " : "a ") + kind +
			" at +0x" + off.toString(16) + (places > 1 ? " and " + plural(places - 1, "more place", "more places") : "")));
		members.slice(0, 4).forEach(([name, value]) => {
			const m = el("li", "mono");
			m.append(soft(el("span"), name), " ", soft(el("span", "value"), value));
			ol.append(m);
		});
		if (count > Math.min(4, members.length)) ol.append(el("li", "muted small", num(count - Math.min(4, members.length)) + " more"));
		li.append(line, ol);
		return li;
	}));
	more("near-more", Math.min(state.nearShown, D.near.length), D.near.length, n => { state.nearShown += n; showNear(); }, 25);
}

/* ---- start ---- */
function showMode() {
	showFigures();
	showCrumbs();
	drawMap();
	showGroups();
	showTable();
	showUnused();
	showReasons();
}
$("shade").addEventListener("click", e => {
	const s = e.target.dataset.shade;
	if (!s || s === state.shade) return;
	state.shade = s;
	for (const b of $("shade").children) b.setAttribute("aria-pressed", b.dataset.shade === s);
	$("map-title").textContent = "Where the code is, and how much of it is " + (s === "unused" ? "never used" : "there twice");
	showLegend();
	showCrumbs();
	drawMap();
});
$("mode").addEventListener("click", e => {
	const m = e.target.dataset.mode;
	if (m && m !== state.mode) { state.mode = m; showMode(); }
});
$("tree").addEventListener("click", e => {
	const k = e.target.dataset.tree;
	if (!k || k === state.tree) return;
	state.tree = k;
	state.focus = -1;
	build(k);
	showCrumbs();
	drawMap();
});
function settle(k) { /* the first node that says something */
	const t = build(k), n = through(t, 0);
	state.node[k] = t.children[n].length ? n : 0;
}
window.addEventListener("resize", drawMap);
for (const q of ["(prefers-color-scheme: dark)"])
	matchMedia(q).addEventListener("change", () => { inks.clear(); readColors(); showLegend(); drawMap(); });
readColors();
showHead();
showNext(D.advice, bytes);
settle("scopes");
showTabs();
showNear();
showLegend();
showMode();
/* For tests. */
window.icfoldAudit = { ms: performance.now(), state, groups, tiles: () => tiles, listed: () => listed, fullName };
document.documentElement.dataset.ready = "yes";
})();
