/* next.js: what saves most, with the command for it; on the pages of one file and of several.  ADVICE as in the JSON report. */
"use strict";
function showNext(advice, bytes) {
	const el = (tag, cls, text) => Object.assign(document.createElement(tag), { className: cls, textContent: text });
	const list = document.getElementById("next");
	list.replaceChildren(...advice.map(a => {
		const li = el("li", "", ""), line = el("div", "line", ""), code = el("code", "command", a.command), copy = el("button", "plain", "Copy");
		copy.type = "button";
		copy.setAttribute("aria-label", "Copy the command: " + a.what);
		copy.addEventListener("click", () => {
			const range = document.createRange();
			range.selectNodeContents(code);
			getSelection().removeAllRanges();
			getSelection().addRange(range);
			if (navigator.clipboard) navigator.clipboard.writeText(a.command).then(() => { copy.textContent = "Copied"; }, () => {});
		});
		line.append(el("b", "", bytes(a.bytes)), el("span", "", a.what));
		li.append(line, code, copy);
		return li;
	}));
	if (!advice.length) list.append(el("li", "muted", "Nothing: no function is there twice, and none is unused."));
}
