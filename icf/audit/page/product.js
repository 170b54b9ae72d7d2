/* product.js: the report of icfold audit over several files.  Reads the JSON in #data; no library, no network.
 *
 * Tables show some rows and a button for more, so that the page's cost does not depend on the size of the product. */
"use strict";
(() => {
const $ = id => document.getElementById(id);
const D = JSON.parse($("data").textContent);
const T = D.total;
const el = (tag, cls, text) => {
	const e = document.createElement(tag);
	if (cls) e.className = cls;
	if (text !== undefined) e.textContent = text;
	return e;
};

/* ---- data ---- */
const DONE = 1, COPY = 2, BAD = 3; /* enum icf_product_state */
const LEVEL = ["relocations kept", "references inferred", "nothing can move"];
const files = D.files.map((r, id) => r[0] === DONE ?
	{ id, state: DONE, name: r[1], code: r[2], functions: r[3], saved: [r[4], r[5]], twice: [r[6], r[7]], unused: r[8], shared: r[9], level: r[10] } :
	{ id, state: r[0], name: r[1], of: r[2] });
const done = files.filter(f => f.state === DONE);
const groups = D.groups.map(r => ({ saving: r[0], files: r[1], count: r[2], size: r[3], name: r[4] || "(no name)", exporter: r[5], in: r[6] }));
/* Names without the folder that all of them are in. */
const common = (() => {
	let s = done.length > 1 ? done[0].name.slice(0, done[0].name.lastIndexOf("/") + 1) : "";
	for (const f of done) while (s && !f.name.startsWith(s)) s = s.slice(0, s.lastIndexOf("/", s.length - 2) + 1);
	return s.length;
})();
const short = id => files[id].name.slice(common);
/* What most files are is said once. */
const usual = LEVEL.map((_, k) => done.filter(f => f.level === k).length).reduce((best, n, k, all) => n > all[best] ? k : best, 0);

/* ---- figures ---- */
const nf = new Intl.NumberFormat("en-US");
const num = v => nf.format(v);
function bytes(v) {
	if (v < 10000) return num(v) + " B";
	if (v < 1024 * 1024) return (v / 1024).toFixed(v < 102400 ? 1 : 0) + " KiB";
	if (v < 1073741824) return (v / 1048576).toFixed(v < 104857600 ? 2 : 0) + " MiB";
	return (v / 1073741824).toFixed(2) + " GiB";
}
const percent = (p, w) => w ? (100 * p / w).toFixed(p / w < .1 ? 2 : 1) + " %" : "0 %";
const plural = (n, one, many) => num(n) + " " + (n === 1 ? one : many);

const state = { mode: D.mode === "safe" ? 1 : 0, file: { sort: "saved", down: true, query: "", shown: 25 }, group: { sort: "saving", down: true, query: "", shown: 25 },
	table: "families", tableShown: 15, pairShown: 15, otherShown: 15, open: new Set() };

function showHead() {
	$("title").textContent = done.length === 1 ? done[0].name : plural(T.files, "file", "files");
	let about = plural(T.functions, "function", "functions") + ", " + bytes(T.code) + " of code";
	if (T.copies) about += "; " + plural(T.copies, "copy", "copies") + " counted once";
	if (T.bad) about += "; " + num(T.bad) + " not analysed";
	if (usual) about += "; " + LEVEL[usual];
	if (common) about += "; in " + done[0].name.slice(0, common);
	$("about").textContent = about;
	for (const id of ["groups", "between"]) $(id).classList.toggle("hidden", T.files < 2);
	$("notice").textContent = D.filter ? "The functions in several files are those that match " + D.filter + "." : "";
	$("notice").classList.toggle("hidden", !D.filter);
	$("foot").textContent = "icfold " + D.version;
}

function showFigures() {
	const card = (label, value, note, main) => {
		const c = el("div", "figure" + (main ? " main" : ""));
		c.append(el("div", "label", label), el("div", "value", value), el("div", "note", note));
		return c;
	};
	const m = state.mode;
	$("figures").replaceChildren(
		card("Folding each file saves", bytes(T.saved[m]), percent(T.saved[m], T.text) + " of .text", true),
		card("Code", bytes(T.code), plural(T.functions, "function", "functions")),
		card("Duplicated in files", bytes(T.twice[m]), percent(T.twice[m], T.code) + " of the code"),
		card("In several files", bytes(T.shared), plural(T.groups, "function", "functions") + ", at best"),
		card("Never used", T.unused_known ? bytes(T.unused) : "not known", percent(T.unused, T.code) + " of the code"));
	for (const b of $("mode").children) b.setAttribute("aria-pressed", +b.dataset.mode === m);
}

/* ---- tables ---- */
function more(place, shown, all, step, act) {
	place.replaceChildren();
	place.classList.toggle("hidden", all <= shown);
	if (all <= shown) return;
	const b = el("button", "", "Show " + num(Math.min(step, all - shown)) + " more");
	b.type = "button";
	b.addEventListener("click", act);
	place.append(b, el("span", "muted small", num(shown) + " of " + num(all)));
}
const words = q => q.toLowerCase().split(/\s+/).filter(w => w);
const fits = (text, q) => q.every(w => text.includes(w));
const valueOf = (x, key) => Array.isArray(x[key]) ? x[key][state.mode] : x[key];
function sorted(list, s) {
	const sign = s.down ? -1 : 1;
	return list.slice().sort((a, b) => {
		const x = valueOf(a, s.sort), y = valueOf(b, s.sort);
		return typeof x === "string" ? (x < y ? -1 : x > y ? 1 : 0) * sign : (x - y) * sign || (a.name < b.name ? -1 : 1);
	});
}
function cells(row, values, share) {
	values.forEach((v, i) => {
		const td = el("td", i === 0 && share ? "bar" : "", v);
		if (i === 0 && share) td.style.setProperty("--share", share);
		row.append(td);
	});
}

function nothing(body, columns, text) {
	const tr = el("tr"), td = el("td", "name muted", text);
	td.colSpan = columns;
	tr.append(td);
	body.append(tr);
}

function showFiles() {
	const q = words(state.file.query), list = sorted(done.filter(f => fits(f.name.toLowerCase(), q)), state.file);
	const most = Math.max(1, ...done.map(f => f.saved[state.mode]));
	$("files-count").textContent = q.length ? plural(list.length, "matches", "match") : plural(done.length, "file", "files");
	$("file-rows").replaceChildren(...list.slice(0, state.file.shown).map(f => {
		const tr = el("tr"), td = el("td", "name", short(f.id));
		cells(tr, [bytes(f.saved[state.mode]), bytes(f.code), num(f.functions), bytes(f.twice[state.mode]), f.unused < 0 ? "?" : bytes(f.unused), bytes(f.shared)],
			f.saved[state.mode] / most);
		if (f.level !== usual) td.append(el("span", "tag", LEVEL[f.level]));
		tr.append(td);
		return tr;
	}));
	if (!list.length) nothing($("file-rows"), 7, "Nothing matches.");
	more($("file-more"), state.file.shown, list.length, 100, () => { state.file.shown += 100; showFiles(); });
}

function toggle(k) {
	state.open.has(k) ? state.open.delete(k) : state.open.add(k);
	showGroups();
	document.querySelector("#group-rows button[data-k='" + groups.indexOf(k) + "']").focus();
}

function showGroups() {
	const q = words(state.group.query);
	const list = sorted(groups.filter(g => fits((g.name + " " + (q.length ? g.in.map(short).join(" ") : "")).toLowerCase(), q)), state.group);
	const most = Math.max(1, ...groups.slice(0, 1).map(g => g.saving));
	$("groups-count").textContent = q.length ? plural(list.length, "matches", "match") :
		num(D.matching) + (D.matching > groups.length ? ", the first " + num(groups.length) + " are here" : "");
	const rows = [];
	for (const g of list.slice(0, state.group.shown)) {
		const tr = el("tr", "group"), td = el("td", "name"), b = el("button", "mono", g.name), open = state.open.has(g);
		b.type = "button";
		b.dataset.k = groups.indexOf(g);
		b.setAttribute("aria-expanded", open);
		cells(tr, [bytes(g.saving), num(g.files), num(g.count), bytes(g.size)], g.saving / most);
		td.append(b);
		if (g.name === "(no name)") td.append(el("span", "tag", "in " + g.in.slice(0, 3).map(id => short(id).split("/").pop()).join(", ") + (g.files > 3 ? ", ..." : "")));
		if (g.exporter >= 0) td.append(el("span", "tag", "exported by " + short(g.exporter)));
		tr.append(td);
		tr.addEventListener("click", () => toggle(g));
		rows.push(tr);
		if (!open) continue;
		const members = el("tr", "members"), cell = el("td"), ul = el("ul");
		cell.colSpan = 5;
		ul.append(...g.in.map(id => el("li", "", short(id))));
		if (g.files > g.in.length) ul.append(el("li", "muted", num(g.files - g.in.length) + " more"));
		cell.append(ul);
		members.append(cell);
		rows.push(members);
	}
	$("group-rows").replaceChildren(...rows);
	if (!list.length) nothing($("group-rows"), 5, q.length ? "Nothing matches." : "None.");
	more($("group-more"), state.group.shown, list.length, 100, () => { state.group.shown += 100; showGroups(); });
}

const TABLES = [["families", "Template families"], ["namespaces", "Namespaces"], ["libraries", "Libraries"], ["exporters", "Exported by"]];
function showTable() {
	const rows = D[state.table], most = Math.max(1, ...rows.slice(0, 1).map(r => r[0]));
	$("table-rows").replaceChildren(...rows.slice(0, state.tableShown).map(r => {
		const tr = el("tr");
		cells(tr, [bytes(r[0]), num(r[1]), num(r[2])], r[0] / most);
		tr.append(el("td", "name", r[3] || "(not known)"));
		return tr;
	}));
	if (!rows.length) nothing($("table-rows"), 4, "None.");
	for (const b of $("tabs").children) b.setAttribute("aria-pressed", b.dataset.table === state.table);
	more($("table-more"), state.tableShown, rows.length, 50, () => { state.tableShown += 50; showTable(); });
}

function showPairs() {
	const most = Math.max(1, ...D.pairs.slice(0, 1).map(r => r[0]));
	$("pairs-cut").classList.toggle("hidden", !D.pairs_cut);
	$("pair-rows").replaceChildren(...D.pairs.slice(0, state.pairShown).map(r => {
		const tr = el("tr"), td = el("td", "name");
		cells(tr, [bytes(r[0]), num(r[1])], r[0] / most);
		td.append(el("div", "", short(r[2])), el("div", "", short(r[3])));
		tr.append(td);
		return tr;
	}));
	if (!D.pairs.length) nothing($("pair-rows"), 3, "None.");
	more($("pair-more"), state.pairShown, D.pairs.length, 50, () => { state.pairShown += 50; showPairs(); });
}

function showOthers() {
	const bad = files.filter(f => f.state === BAD), count = new Map();
	for (const f of bad) count.set(f.of, (count.get(f.of) || 0) + 1);
	/* Reasons that few files have come first: a thousand object files hide no broken program. */
	const list = bad.sort((a, b) => count.get(a.of) - count.get(b.of) || (a.of < b.of ? -1 : a.of > b.of ? 1 : a.id - b.id)).concat(files.filter(f => f.state === COPY));
	$("others").classList.toggle("hidden", !list.length);
	$("others-count").textContent = plural(T.copies, "copy", "copies") + ", " + num(T.bad) + " not analysed";
	$("other-rows").replaceChildren(...list.slice(0, state.otherShown).map(f => {
		const tr = el("tr");
		tr.append(el("td", "name", f.name), el("td", "name", f.state === COPY ? "the same as " + files[f.of].name : f.of));
		return tr;
	}));
	more($("other-more"), state.otherShown, list.length, 100, () => { state.otherShown += 100; showOthers(); });
}

/* ---- events ---- */
function sortable(table, s, show) {
	for (const th of table.querySelectorAll("th[data-sort]"))
		th.querySelector("button").addEventListener("click", () => {
			s.down = s.sort === th.dataset.sort ? !s.down : th.dataset.sort !== "name";
			s.sort = th.dataset.sort;
			for (const x of table.querySelectorAll("th[data-sort]")) x.removeAttribute("aria-sort");
			th.setAttribute("aria-sort", s.down ? "descending" : "ascending");
			show();
		});
}
for (const b of $("mode").children)
	b.addEventListener("click", () => { state.mode = +b.dataset.mode; showFigures(); showFiles(); });
$("file-search").addEventListener("input", e => { state.file.query = e.target.value; state.file.shown = 25; showFiles(); });
$("search").addEventListener("input", e => { state.group.query = e.target.value; state.group.shown = 25; showGroups(); });
$("tabs").append(...TABLES.map(([key, text]) => {
	const b = el("button", "", text);
	b.type = "button";
	b.dataset.table = key;
	b.addEventListener("click", () => { state.table = key; state.tableShown = 15; showTable(); });
	return b;
}));
sortable($("file-table"), state.file, showFiles);
sortable($("group-table"), state.group, showGroups);
/* "/" goes to the search, as on many pages. */
document.addEventListener("keydown", e => {
	if (e.key === "/" && !e.ctrlKey && !e.metaKey && !e.altKey && document.activeElement.tagName !== "INPUT") {
		e.preventDefault();
		$("file-search").focus();
	}
});
showHead();
showFigures();
showNext(D.advice, bytes);
showFiles();
showGroups();
showTable();
showPairs();
showOthers();
/* For tests. */
window.icfoldAudit = { ms: performance.now(), state, files: done, groups };
document.documentElement.dataset.ready = "yes";
})();
