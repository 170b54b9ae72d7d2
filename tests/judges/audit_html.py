#!/usr/bin/env python3
"""audit_html.py FOLDER: opens the pages of icfold audit in FOLDER in headless Chromium and uses them as a person would.

Speaks the WebDriver protocol (W3C) to chromedriver with nothing but the standard library.  Prints "ok NAME" and "not ok NAME: why"
lines; exit status 1 when something was not ok, 3 when the browser cannot be driven."""
import base64, json, os, re, struct, subprocess, sys, time, urllib.request, zlib

folder = os.path.abspath(sys.argv[1])
failed = 0


def check(name, good, why=""):
	global failed
	failed += not good
	print("ok audit-html/" + name if good else "not ok audit-html/%s: %s" % (name, str(why)[:200]), flush=True)


class Browser:
	def __init__(self):
		self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
		for line in self.driver.stdout:
			m = re.search(r"started successfully on port (\d+)", line)
			if m:
				break
		self.base = "http://127.0.0.1:" + m.group(1)
		self.session = None
		args = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1400,1000", "--user-data-dir=" + folder + "/profile"]
		caps = {"browserName": "chrome", "goog:chromeOptions": {"args": args}, "goog:loggingPrefs": {"browser": "ALL"}}
		self.session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": caps}}, False)["sessionId"]

	def call(self, method, path, body=None, in_session=True):
		url = self.base + ("/session/" + self.session if in_session else "") + path
		data = json.dumps(body).encode() if body is not None else b"{}" if method == "POST" else None
		request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
		with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=300) as reply:
			return json.load(reply)["value"]

	def close(self):
		try:
			self.call("DELETE", "")
		except OSError:
			pass
		self.driver.terminate()
		self.driver.wait()

	def js(self, code, *args):
		return self.call("POST", "/execute/sync", {"script": code, "args": list(args)})

	def open(self, page):
		self.call("POST", "/url", {"url": "file://" + os.path.join(folder, page)})

	def errors(self):
		return [e["message"] for e in self.call("POST", "/se/log", {"type": "browser"}) if e["level"] in ("SEVERE", "WARNING")]

	def keys(self, *keys):
		named = {"Right": "\ue014", "Left": "\ue012", "Up": "\ue013", "Down": "\ue015", "Enter": "\ue007", "Escape": "\ue00c", "Tab": "\ue004"}
		actions = []
		for k in keys:
			k = named.get(k, k)
			actions += [{"type": "keyDown", "value": k}, {"type": "keyUp", "value": k}]
		self.call("POST", "/actions", {"actions": [{"type": "key", "id": "k", "actions": actions}]})

	def click_at(self, x, y):
		self.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "m", "actions": [
			{"type": "pointerMove", "x": int(x), "y": int(y), "duration": 0}, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]}]})

	def size(self, width, height):
		self.call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride",
			"params": {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}})

	def scheme(self, value):
		self.call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {"features": [{"name": "prefers-color-scheme", "value": value}]}})

	def processor(self):
		"""Seconds of processor time that the page's main thread has used; it counts anew in a new process."""
		self.call("POST", "/goog/cdp/execute", {"cmd": "Performance.enable", "params": {"timeDomain": "threadTicks"}})
		metrics = self.call("POST", "/goog/cdp/execute", {"cmd": "Performance.getMetrics", "params": {}})["metrics"]
		return next(m["value"] for m in metrics if m["name"] == "TaskDuration")

	def screenshot(self, name):
		data = base64.b64decode(self.call("GET", "/screenshot"))
		with open(os.path.join(folder, name), "wb") as f:
			f.write(data)
		return data


def pixels(png):
	"""The rows of an 8-bit, not interlaced PNG (RFC 2083), and the bytes of a pixel."""
	width, height, depth, kind, _, _, lace = struct.unpack(">IIBBBBB", png[16:29])
	assert depth == 8 and lace == 0 and kind in (2, 6)
	n, at, data = 3 if kind == 2 else 4, 8, b""
	while at < len(png):
		size, tag = struct.unpack(">I4s", png[at:at + 8])
		if tag == b"IDAT":
			data += png[at + 8:at + 8 + size]
		at += size + 12
	raw, rows, last = zlib.decompress(data), [], bytes(width * n)
	for y in range(height):
		line = y * (width * n + 1)
		f, row = raw[line], bytearray(raw[line + 1:line + 1 + width * n])
		for i in range(len(row)):
			a, b, c = row[i - n] if i >= n else 0, last[i], last[i - n] if i >= n else 0
			if f == 4:
				p, q, r = abs(b - c), abs(a - c), abs(a + b - 2 * c)
				row[i] = row[i] + (a if p <= q and p <= r else b if q <= r else c) & 255
			elif f:
				row[i] = row[i] + (a if f == 1 else b if f == 2 else (a + b) // 2) & 255
		rows.append(bytes(row))
		last = row
	return rows, n


def colours(png):
	rows, n = pixels(png)
	return len({row[i:i + n] for row in rows[::3] for i in range(0, len(row), 3 * n)})


CONTRAST = """
const lum = c => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(x => (x /= 255) <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4);
	return .2126 * v[0] + .7152 * v[1] + .0722 * v[2]; };
const back = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)$|transparent/.test(c)) return c; } return 'rgb(255,255,255)'; };
let least = 99, where = '';
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let n; n = walk.nextNode();) {
	const e = n.parentElement;
	if (!n.data.trim() || !e.offsetParent || e.closest('.sr, .skip, script')) continue;
	const a = lum(getComputedStyle(e).color), b = lum(back(e)), r = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
	if (r < least) { least = r; where = e.className + ': ' + n.data.trim().slice(0, 40); }
}
return [least, where];
"""
ROWS = "return [...document.querySelectorAll('#group-rows tr.group')].map(r => [...r.cells].map(c => c.textContent))"
number = lambda text: int(text.replace(",", ""))


def wait_for(holds):
	"""Whether HOLDS() becomes true within a minute."""
	end = time.monotonic() + 60
	while not holds():
		if time.monotonic() > end:
			return False
		time.sleep(.05)
	return True


def ready(b, page):
	b.open(page)
	return wait_for(lambda: b.js("return document.documentElement.dataset.ready") == "yes")


def load(name):
	with open(os.path.join(folder, name)) as f:
		return json.load(f)


def known_program(b):
	audit = load("eh.json")
	check("opens", ready(b, "eh.html"), b.errors())
	check("no-network", b.js("return performance.getEntriesByType('resource').filter(r => !r.name.startsWith('data:')).length") == 0, "something is loaded")
	png = b.screenshot("light.png")
	check("renders", colours(png) > 40, "the screenshot has %d colours" % colours(png))
	rows = b.js(ROWS)
	check("groups", len(rows) == min(50, audit["n_groups"]) and number(rows[0][0]) == audit["groups"][0]["saving"], rows[:1])
	check("figures", "%.2f %%" % (100 * audit["all"]["text_saved"] / audit["text_bytes"]) in b.js("return document.getElementById('figures').textContent") or
		"%.1f %%" % (100 * audit["all"]["text_saved"] / audit["text_bytes"]) in b.js("return document.getElementById('figures').textContent"), "the share of .text is not there")
	for column, key in ((0, "saving"), (1, "count"), (2, "size"), (3, "name")):
		orders = []
		for _ in range(2):
			b.js("document.querySelector('#group-table th[data-sort=\"' + arguments[0] + '\"] button').click()", key)
			v = [r[column] if column == 3 else number(r[column]) for r in b.js(ROWS)]
			said = b.js("return document.querySelector('#group-table th[data-sort=\"' + arguments[0] + '\"]').getAttribute('aria-sort')", key)
			orders.append(said if v == sorted(v, reverse=said == "descending") else "wrong")
		check("sort-" + key, sorted(orders) == ["ascending", "descending"], orders)
	word = audit["groups"][0]["name"].split("(")[0].split("<")[0].split("::")[-1].split()[-1][:12]
	want = b.js("const f = window.icfoldAudit; return f.groups.filter(g => g.members.some(i => f.fullName(i).toLowerCase().includes(arguments[0]))).length", word.lower())
	b.keys("/", *word)
	wait_for(lambda: b.js("return window.icfoldAudit.listed().length") == want and "match" in b.js("return document.getElementById('groups-count').textContent"))
	got = b.js("return [window.icfoldAudit.listed().length, document.getElementById('groups-count').textContent, document.querySelectorAll('#group-rows mark').length]")
	check("search", 0 < want == got[0] and "match" in got[1], (word, want, got))
	b.js("const s = document.getElementById('search'); s.value = 'no function is called so'; s.dispatchEvent(new Event('input'))")
	check("search-nothing", wait_for(lambda: b.js("return document.querySelectorAll('#group-rows tr').length") == 0 and
		"Nothing" in b.js("return document.getElementById('group-more').textContent")))
	b.js("const s = document.getElementById('search'); s.value = ''; s.dispatchEvent(new Event('input'))")
	wait_for(lambda: len(b.js(ROWS)) == len(rows))
	b.js("document.querySelector('#group-table th[data-sort=\"saving\"] button').click()")
	members = b.js("document.querySelector('#group-rows tr.group td.name button').click(); return document.querySelectorAll('#group-rows tr.members li').length")
	first = number(b.js(ROWS)[0][1])
	check("members", members == min(first, 401), (members, first))
	b.js("document.querySelector('[data-mode=\"safe\"]').click()")
	v = sum(number(r[0]) for r in b.js(ROWS))
	check("mode", v == sum(g["saving_safe"] for g in audit["groups"]) or audit["n_groups"] > 50, v)
	tabs = b.js("return [...document.querySelectorAll('#tabs button')].map(t => (t.click(), document.querySelectorAll('#dimension-rows tr').length))")
	check("tables", len(tabs) >= 4 and all(tabs), tabs)
	check("reasons", b.js("return document.querySelectorAll('#reasons .reason').length") == len([r for r in audit["reasons"] if r["functions_safe"]]))
	check("near-misses", b.js("return document.querySelectorAll('#near > li').length") == min(12, len(audit["near_misses"])))


def treemap(b):
	b.js("window.scrollTo(0, 0); document.getElementById('canvas').focus()")
	state = "const f = window.icfoldAudit, s = f.state; return [s.tree, s.node[s.tree], s.focus, f.tiles().length]"
	start = b.js(state)
	check("map", start[3] > 2, start)
	seen = {start[2]}
	for key in ("Right", "Down", "Right", "Left", "Up"):
		b.keys(key)
		seen.add(b.js(state)[2])
	check("map-arrows", len(seen) > 1, seen)
	# Focus a tile that holds further tiles.
	b.js("const f = window.icfoldAudit; f.state.focus = f.tiles().findIndex(t => t.c >= 0)")
	b.keys("Enter")
	inside = b.js(state)
	check("map-enter", inside[1] != start[1], inside)
	check("map-place", len(b.js("return [...document.querySelectorAll('#crumbs button')].map(x => x.textContent)")) > 1)
	check("map-spoken", b.js("return document.getElementById('spoken').textContent.length") > 5)
	b.keys("Escape")
	check("map-escape", b.js(state)[1] == start[1], b.js(state))
	box = b.js("const r = document.getElementById('canvas').getBoundingClientRect(), t = window.icfoldAudit.tiles().find(t => t.c >= 0); return [r.x + t.x + 9, r.y + t.y + 7]")
	b.click_at(*box)
	check("map-click", b.js(state)[1] != start[1], b.js(state))
	b.js("document.querySelector('#crumbs button').click()")
	b.js("document.querySelector('[data-tree=\"sources\"]').click()")
	check("map-sources", b.js(state)[0] == "sources" and b.js(state)[3] > 0, b.js(state))
	b.js("document.querySelector('[data-tree=\"scopes\"]').click()")


def never_used(b):
	audit = load("unused.json")["never_used"]
	check("unused-opens", ready(b, "unused.html"), b.errors())
	rows = "return [...document.querySelectorAll('#%s tr')].map(r => [...r.cells].map(c => c.textContent))"
	texts = b.js("return ['figures', 'unused-count', 'unused-saves'].map(i => document.getElementById(i).textContent)")
	check("unused-figures", "Never used" in texts[0] and texts[1].startswith("%d functions" % audit["functions"]) and audit["functions"] > 5, texts)
	got = b.js(rows % "unused-rows")
	want = [[r["unused_bytes"], r["unused_functions"], r["bytes"]] for r in audit["libraries"]]
	check("unused-libraries", want and [[number(v) for v in r[:3]] for r in got] == want, (got, want))
	tabs = b.js("return [...document.querySelectorAll('#unused-tabs button')].map(t => [t.dataset.table, (t.click(), document.querySelectorAll('#unused-rows tr').length)])")
	check("unused-tables", len(tabs) >= 4 and all(n == min(25, len(audit[k])) for k, n in tabs), tabs)
	got = [number(r[0]) for r in b.js(rows % "unused-list")]
	check("unused-list", got == [f["bytes"] for f in audit["list"][:25]], got)
	b.js("document.querySelector('[data-mode=\"safe\"]').click()")
	check("unused-mode", "safe" in b.js("return document.getElementById('unused-saves').textContent"))
	dead = "const c = document.getElementById('canvas'), v = getComputedStyle(document.documentElement).getPropertyValue('--dead').trim(), k = document.createElement('canvas');" \
		"k.width = c.width; k.height = c.height; const x = k.getContext('2d', { willReadFrequently: true }); x.drawImage(c, 0, 0); const d = x.getImageData(0, 0, c.width, c.height).data;" \
		"const w = [1, 3, 5].map(i => parseInt(v.slice(i, i + 2), 16)); let n = 0; for (let i = 0; i < d.length; i += 4) n += d[i] === w[0] && d[i + 1] === w[1] && d[i + 2] === w[2]; return n"
	before = b.js(dead)
	b.js("document.querySelector('[data-shade=\"unused\"]').click()")
	texts = b.js("return ['map-title', 'crumbs', 'legend'].map(i => document.getElementById(i).textContent)")
	check("unused-map", before == 0 and b.js(dead) > 100 and all("never used" in t for t in texts), (before, b.js(dead), texts))
	b.js("document.querySelector('[data-shade=\"twice\"]').click()")
	check("unused-map-back", b.js(dead) == 0 and "there twice" in b.js("return document.getElementById('map-title').textContent"))
	looks(b, "unused-")
	check("unused-console", not (e := b.errors()), e)


def several_files(b):
	audit = load("product.json")
	check("product-opens", ready(b, "product.html"), b.errors())
	check("product-next", b.js("return [...document.querySelectorAll('#next li .command')].map(c => c.textContent)") == [a["command"] for a in audit["advice"]] != [])
	done = [f for f in audit["files"] if f["state"] == "analysed"]
	rows = "return [...document.querySelectorAll('#%s tr')].map(r => [...r.cells].map(c => c.textContent))"
	got = b.js(rows % "file-rows")
	check("product-files", [r[2] for r in got] == ["{:,}".format(f["functions"]) for f in done], got)
	check("product-others", len(b.js(rows % "other-rows")) == len(audit["files"]) - len(done) == 3)
	check("product-hostile", "<b>hostile" in "".join(r[-1] for r in got) and not b.js("return window.broken"), got)
	# The keyboard: "/" goes to the search; Enter opens a function.
	b.keys("/", *"hostile")
	check("product-search", wait_for(lambda: len(b.js(rows % "file-rows")) == 1), b.js(rows % "file-rows"))
	b.keys(*"none")
	check("product-search-nothing", wait_for(lambda: b.js(rows % "file-rows") == [["Nothing matches."]]), b.js(rows % "file-rows"))
	groups = b.js("return document.querySelectorAll('#group-rows tr.group').length")
	check("product-groups", groups == min(25, len(audit["groups"])) > 0, groups)
	b.js("document.querySelector('#group-rows button').focus()")
	b.keys("Enter")
	members = b.js("return [...document.querySelectorAll('#group-rows tr.members li')].map(l => l.textContent)")
	check("product-enter", len(members) == audit["groups"][0]["n_files"], members)
	b.keys("Enter")
	check("product-enter-again", not b.js("return document.querySelectorAll('#group-rows tr.members').length"))
	b.js("document.querySelectorAll('#mode button')[1].click(); document.querySelector('#file-table th[data-sort=\"name\"] button').click()")
	b.js("const s = document.getElementById('file-search'); s.value = ''; s.dispatchEvent(new Event('input'))")
	names = [r[-1] for r in b.js(rows % "file-rows")]
	check("product-sort", names == sorted(names) and len(names) == len(done), names)
	looks(b, "product-")
	check("product-console", not (e := b.errors()), e)
	size = os.path.getsize(os.path.join(folder, "thousand.html"))
	check("thousand-size", size < 5 << 20, size)
	before = b.processor()
	opened = ready(b, "thousand.html")
	after = b.processor()
	used = after - before if after >= before else after
	check("thousand-opens", opened and 0 < used < 2 and "1,300" in b.js("return document.getElementById('title').textContent"), "%.2f s" % used)
	before = b.processor()
	b.keys("/", *"0777 folders")
	check("thousand-search", wait_for(lambda: len(b.js(rows % "file-rows")) == 1) and b.processor() - before < 2, b.processor() - before)
	check("thousand-console", not (e := b.errors()), e)


def corner(png):
	"""How bright the page is near its upper left corner, 0 to 255."""
	rows, n = pixels(png)
	return sum(rows[2][2 * n:2 * n + 3]) / 3


def looks(b, name=""):
	for scheme in ("light", "dark"):
		b.scheme(scheme)
		wait_for(lambda: (corner(b.screenshot(scheme + ".png")) > 200) == (scheme == "light"))
		png = b.screenshot(scheme + ".png")
		check(name + scheme, (corner(png) > 200) == (scheme == "light") and colours(png) > 40, corner(png))
		# Colours change gradually.
		wait_for(lambda: b.js(CONTRAST)[0] >= 4.5)
		least, where = b.js(CONTRAST)
		check(name + scheme + "-contrast", least >= 4.5, "%.2f at %s" % (least, where))
	b.scheme("light")
	for width in (1400, 900, 420):
		b.size(width, 900)
		wait_for(lambda: b.js("return window.innerWidth") == width)
		wide = b.js("return [document.documentElement.scrollWidth, window.innerWidth]")
		check(name + "fits-%d" % width, wide[0] <= wide[1], wide)
	b.size(1400, 1000)


def main():
	try:
		b = Browser()
	except (OSError, UnboundLocalError, AttributeError, KeyError) as e:
		print("audit_html.py: cannot drive the browser: %s" % e, file=sys.stderr)
		return 3
	try:
		known_program(b)
		treemap(b)
		looks(b)
		check("console", not (e := b.errors()), e)
		check("hostile-names", ready(b, "hostile.html") and not b.js("return window.broken"), b.errors())
		names = "\n".join(r[3] for r in b.js(ROWS)) + b.js("document.querySelectorAll('#group-rows tr.group button').forEach(x => x.click()); return document.getElementById('group-rows').textContent")
		check("hostile-names-shown", all(t in names for t in ("</script><script>window.broken=1</script>", "<img src=x onerror", "<!--<script>", "\u2028", "\ufffd")), names)
		check("hostile-title", b.js("return document.title").startswith("<b>hostile"), b.js("return document.title"))
		check("hostile-console", not (e := b.errors()), e)
		size = os.path.getsize(os.path.join(folder, "many.html"))
		check("many-size", size < 5 << 20, size)
		before = b.processor()
		opened = ready(b, "many.html")
		after = b.processor()
		used = after - before if after >= before else after
		check("many-opens", opened and 0 < used < 3, "%.2f s" % used)
		before = b.processor()
		b.js("document.querySelector('[data-mode=\"safe\"]').click(); document.querySelector('[data-tree=\"sources\"]').click(); document.querySelector('[data-tree=\"scopes\"]').click()")
		used = b.processor() - before
		check("many-responds", 0 < used < 2, "%.2f s" % used)
		check("many-renders", colours(b.screenshot("many.png")) > 20)
		check("many-console", not (e := b.errors()), e)
		never_used(b)
		several_files(b)
		check("stripped", ready(b, "stripped.html") and "address" in b.js("return document.getElementById('notice').textContent"), b.errors())
		if load("stripped.json")["never_used"]["obstacle"]:
			shown = b.js("return ['#unused-saves', '#shade', '#unused-table'].map(s => { const e = document.querySelector(s); return e.offsetParent ? e.textContent : '' })")
			check("unused-not-known", "not known" in shown[0] and not shown[1] and not shown[2], shown)
		check("stripped-console", not (e := b.errors()), e)
	finally:
		b.close()
	return failed != 0


sys.exit(main())
