/* name.c: where the name of a function ends in the text of a line.
 *
 * glog and abseil write a name as their own demanglers spell it: `work<>()`, `work()` and
 * `work(int)` are all work(int).  What all spellings have in common is the function's own name,
 * without what it is in and what it takes.  Behind it follow brackets, and suffixes of compilers.
 */
#include "icf/cmd/log/state.h"
#include <ctype.h>

/* Bytes of a text. */
struct span {
	const char *p, *end;
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '~' || (c & 0x80);
}

static bool begins(struct span s, const char *with)
{
	size_t n = strlen(with);
	return (size_t)(s.end - s.p) >= n && !memcmp(s.p, with, n);
}

/* Behind the brackets that open at S, or S's end. */
static const char *behind_brackets(struct span s)
{
	unsigned depth = 0;
	for (; s.p < s.end; s.p++) {
		depth += strchr("(<[{", *s.p) && *s.p;
		/* of an arrow */
		if (*s.p == '>' && s.p[-1] == '-')
			continue;
		depth -= depth && strchr(")>]}", *s.p) && *s.p;
		if (!depth)
			return s.p + 1;
	}
	return s.end;
}

/* The function's own name in NAME, as a demangler writes it. */
static struct span own_name(const char *name)
{
	struct span all = { name, name + strlen(name) }, own = all;
	while (all.p < all.end) {
		bool qualifier = begins(all, "(anonymous namespace)") || begins(all, "{");
		if (*all.p == '(' && all.p > own.p && !qualifier)
			break;
		if (*all.p == '<' || *all.p == '(' || *all.p == '{' || *all.p == '[')
			all.p = behind_brackets(all);
		else if (all.p == own.p && begins(all, "operator"))
			return (struct span){ all.p, all.p + strlen("operator") };
		else if (begins(all, "::") || *all.p == ' ') {
			all.p += *all.p == ' ' ? 1 : 2;
			own.p = all.p;
		} else
			all.p++;
	}
	for (own.end = own.p; own.end < all.end && is_word(*own.end);)
		own.end++;
	return own;
}

/* The end of what follows a function's own name at S. */
static const char *name_end(struct span s)
{
	static const char *const suffix[] = { " const", " volatile", " &&", " &", " noexcept" };
	if (s.p < s.end && *s.p == '<')
		s.p = behind_brackets(s);
	if (s.p < s.end && *s.p == '(')
		s.p = behind_brackets(s);
	for (const char *from = NULL; from != s.p;) {
		from = s.p;
		for (size_t i = 0; i < sizeof suffix / sizeof *suffix; i++)
			s.p += begins(s, suffix[i]) ? strlen(suffix[i]) : 0;
		if (begins(s, " [clone ") || begins(s, "[abi:"))
			s.p = behind_brackets((struct span){ s.p + (*s.p == ' '), s.end });
		if (begins(s, ".") && s.end - s.p > 1 && is_word(s.p[1])) /* .part.0, .cold */
			while (s.p < s.end && (is_word(*s.p) || *s.p == '.'))
				s.p++;
	}
	return s.p;
}

/* May the own name of NAME, which is at OWN, stand at P in TEXT?  What it is in may be spelt in
 * other ways, but words before it are those of NAME: what the function returns. */
static bool may_stand(struct span text, const char *p, const char *name, const char *own)
{
	if (p == text.p)
		return true;
	if (is_word(p[-1]))
		return false;
	if (p - text.p == own - name && !memcmp(text.p, name, (size_t)(own - name)))
		return true;
	while (text.p < p && *text.p != ' ')
		text.p = strchr("(<[{", *text.p) && *text.p ? behind_brackets(text) : text.p + 1;
	return text.p >= p;
}

/* How many bytes TEXT has up to the end of NAME, if it begins with that, qualified or not; or 0. */
static size_t bytes_of(struct span text, const char *name)
{
	struct span own = name ? own_name(name) : (struct span){ NULL, NULL };
	size_t n = (size_t)(own.end - own.p);
	bool is_operator = n == strlen("operator") && begins(own, "operator");
	if (!n)
		return 0;
	for (const char *p = text.p; (p = memmem(p, (size_t)(text.end - p), own.p, n)); p++) {
		struct span rest = { p + n, text.end };
		if (!may_stand(text, p, name, own.p))
			continue;
		if (is_operator) /* nothing of its kind says where it ends */
			return (size_t)(text.end - text.p);
		if (rest.p < rest.end && is_word(*rest.p))
			continue;
		rest.p = name_end(rest);
		/* A part of a longer name: of what is in the function, or of what it is in. */
		if (!begins(rest, "::"))
			return (size_t)(rest.p - text.p);
	}
	return 0;
}

/* How the log's writer may have spelt it, the most likely one first. */
size_t icf_log_name_bytes(const struct icf_log *g, const struct icf_log_line *l,
			  const struct icf_sym_answer *a)
{
	static const char none[] = "(unknown)";
	const char *s = icf_log_at(g, l, l->f.cut);
	struct span text = { s, s + l->f.cut.n };
	const struct dwr_sym_frame *f = &a->frame[a->n - 1];
	struct dwr_sym_symbol sym;
	size_t n;
	for (const char *p = text.p; p < text.end; p++)
		if (*p == '\033' || *p == '\t')
			text.end = p;
	if (begins(text, none))
		return strlen(none);
	if ((n = bytes_of(text, f->linkage)) || (n = bytes_of(text, f->function)))
		return n;
	for (size_t i = 0; a->merged && i < a->merged->n; i++)
		if ((n = bytes_of(text, a->merged->candidate[i])))
			return n;
	if (dwr_sym_symbol_at(g->file.data[l->file]->sym, l->address - !l->pc, &sym))
		return bytes_of(text, sym.name);
	return 0;
}

bool icf_log_may_name(const char *text, size_t n, const char *function)
{
	struct span own = function ? own_name(function) : (struct span){ NULL, NULL };
	return own.p == own.end || memmem(text, n, own.p, (size_t)(own.end - own.p));
}
