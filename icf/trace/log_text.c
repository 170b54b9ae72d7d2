/* log_text.c: see log_text.h.
 *
 * Logs put other things before a frame (times, names of containers), so a frame is looked for
 * anywhere in the line.  A name of a file may hold almost any character; it ends at the last +0x
 * before the bracket.  Names of C++ functions have brackets, and FILE(NAME+0xOFFSET) is read from
 * its end.
 *
 * Each place where a frame may begin is tried, and each try may read to the end of the longest
 * name. So the work for one line is limited: in what goes on for long after that there is no frame.
 */
#include "icf/trace/log_text.h"
#include "icf/trace/log_scan.h"

/* "[0xADDRESS]" that ends at T's end; sets the end before it, and before spaces. */
static bool take_bracket_back(struct text *t, uint64_t *address)
{
	if (left(t) < 2 || t->end[-1] != ']')
		return false;
	const char *open = t->end - 1;
	while (open > t->p && *open != '[')
		open--;
	struct text in = { t->start, open + 1, t->end - 1, t->work };
	if (*open != '[' || !take_hex(&in, address) || in.p != in.end)
		return false;
	t->end = open;
	while (t->end > t->p && t->end[-1] == ' ')
		t->end--;
	return true;
}

/* The name of a file that ends at END.  Before it may be anything: its last word counts, unless the
 * line begins with it. */
static struct icf_log_part last_file(const struct text *t, const char *end)
{
	const char *from = t->p;
	if (*from != '/' && *from != '.')
		for (const char *p = from; p < end; p++)
			from = *p == ' ' ? p + 1 : from;
	return part(t, from, end);
}

/* FILE(NAME+0xOFFSET) [0xADDRESS], which ends the line. */
static bool symbols(struct text t, struct icf_log_frame *f)
{
	const char *end = t.end, *open, *plus;
	struct icf_log_part all;
	uint64_t at;
	while (t.end > t.p && (t.end[-1] == ' ' || t.end[-1] == '\t'))
		t.end--;
	if (!take_bracket_back(&t, &at) || t.end == t.p || t.end[-1] != ')' ||
	    !(open = opening(t.p, t.end)) || open == t.p)
		return false;
	skip_space(&t);
	f->form = take(&t, "> ") ? ICF_LOG_STRACE : ICF_LOG_GLIBC;
	f->file = last_file(&t, open);
	f->prefix = part(&t, t.start, t.start + f->file.at);
	f->cut = part(&t, end, end);
	if (f->form == ICF_LOG_STRACE) {
		f->offset = at;
		f->has_offset = true;
	} else {
		f->address = at;
		f->has_address = true;
	}
	plus = open + 1;
	if (plus == t.end - 1) /* FILE() */
		return f->file.n != 0;
	if (*plus == '+') {
		struct text number = { t.start, plus + 1, t.end - 1, t.work };
		uint64_t off;
		if (!take_hex(&number, &off) || number.p != number.end)
			return false;
		if (f->form == ICF_LOG_GLIBC) {
			f->offset = off;
			f->has_offset = true;
		}
		return f->file.n != 0;
	}
	uint64_t off;
	if (!split_offset(&t, open + 1, t.end - 1, &all, &off))
		return false;
	f->name = all;
	if (f->form == ICF_LOG_GLIBC) {
		f->offset = off;
		f->has_offset = true;
	} else
		f->into = off;
	return f->file.n != 0;
}

/* FILE[0xADDRESS], which ends the line: glibc's backtrace_symbols_fd() where it knows no name, in a
 * program with fixed addresses. */
static bool bare(struct text t, struct icf_log_frame *f)
{
	const char *end = t.end;
	while (t.end > t.p && (t.end[-1] == ' ' || t.end[-1] == '\t'))
		t.end--;
	f->form = ICF_LOG_GLIBC;
	f->has_address = true;
	f->cut = part(&t, end, end);
	if (!take_bracket_back(&t, &f->address) || *t.end != '[')
		return false;
	skip_space(&t);
	f->file = last_file(&t, t.end);
	f->prefix = part(&t, t.start, t.start + f->file.at);
	return f->file.n != 0;
}

/* Do two blanks end at P, or does the text begin there, or "PC: " end? */
static bool stands_apart(const struct text *t, const char *p)
{
	size_t n = (size_t)(p - t->start);
	return !n || (n > 1 && isblank((unsigned char)p[-1]) && isblank((unsigned char)p[-2])) ||
	       (n >= 4 && !memcmp(p - 4, "PC: ", 4));
}

/* From the @ on.  Both the @ and the address are set off by blanks: "4 slots @ 0x40" is no frame.
 */
static bool glog(struct text t, struct icf_log_frame *f)
{
	bool apart = stands_apart(&t, t.p);
	f->form = ICF_LOG_GLOG;
	if (!take(&t, "@") || skip_space(&t) < (apart ? 1 : 2) || !take_hex(&t, &f->address))
		return false;
	f->has_address = true;
	if (!skip_space(&t) || t.p == t.end)
		return false;
	/* abseil writes the size of the frame in memory before the name */
	struct text size = t;
	uint64_t n;
	if (take_number(&size, 10, &n) && skip_space(&size) && size.p < size.end)
		t.p = size.p;
	f->cut = part(&t, t.p, t.end);
	f->name = f->cut;
	return true;
}

/* "   N:     0xADDRESS - NAME" */
static bool rust(struct text t, struct icf_log_frame *f)
{
	f->form = ICF_LOG_RUST;
	skip_space(&t);
	const char *from = t.p;
	if (!take_number(&t, 10, &f->n))
		return false;
	f->number = part(&t, from, t.p);
	f->has_number = true;
	if (!take(&t, ":") || !skip_space(&t) || !take_hex(&t, &f->address) || !take(&t, " - "))
		return false;
	f->has_address = true;
	from = t.p;
	f->cut = part(&t, from, t.end);
	if (!take(&t, "<unknown>") || t.p != t.end)
		f->name = f->cut;
	return f->cut.n != 0;
}

/* Behind "ip"; faults have " ADDRESS sp ", and other traps ":ADDRESS sp:". */
static bool kernel(struct text t, struct icf_log_frame *f)
{
	bool colon = take(&t, ":");
	static const char in[] = " in ";
	const char *end = t.end;
	uint64_t start, size, at;
	f->form = ICF_LOG_KERNEL;
	if ((!colon && !take(&t, " ")) || !take_number(&t, 16, &f->address) ||
	    !take(&t, colon ? " sp:" : " sp "))
		return false;
	f->has_address = true;
	if (left(&t) > MAX_PLACE)
		t.end = t.p + MAX_PLACE;
	if (!spend(&t, left(&t)))
		return false;
	const char *p = memmem(t.p, left(&t), in, strlen(in));
	const char *open = p ? memchr(p, '[', (size_t)(t.end - p)) : NULL;
	if (!open)
		return false;
	f->file = part(&t, p + strlen(in), open);
	f->cut = part(&t, end, end);
	t.p = open + 1;
	if (!take_number(&t, 16, &at))
		return false;
	if (take(&t, ",")) { /* since Linux 6.1: the offset in the file */
		f->offset = at;
		f->has_offset = f->in_file = true;
		if (!take_number(&t, 16, &start))
			return false;
	} else {
		start = at;
		f->offset = f->address - start;
		f->has_offset = f->in_code = true;
	}
	return take(&t, "+") && take_number(&t, 16, &size) && take(&t, "]") &&
	       f->address >= start && f->address - start < size && f->file.n;
}

static bool ends_word(char c)
{
	return isspace((unsigned char)c) || strchr("()[]{}<>\"'`,;=|", c);
}

/* "#3  0xADDRESS NAME (FILE + 0xOFFSET)": FILE may have spaces there. */
static bool is_numbered(struct text t)
{
	uint64_t n;
	t.p = t.start;
	return spend(&t, skip_space(&t)) && take(&t, "#") && take_number(&t, 10, &n) &&
	       skip_space(&t) && take_hex(&t, &n);
}

/* What stands before FROM may be about the frame.  About the line's writer is what ends in a number
 * in square brackets, or in a bar.  Returns its length. */
static size_t writer(const struct text *t, const char *from)
{
	for (const char *p = t->start; p < from && spend(t, 1); p++)
		if (*p == ']' || *p == '|')
			return (size_t)(p + 1 - t->start);
	return 0;
}

/* FILE+0xOFFSET anywhere; the plus is at T's place. */
static bool offset(struct text t, const char *plus, struct icf_log_frame *f)
{
	const char *from = plus, *to = plus;
	f->form = ICF_LOG_OFFSET;
	t.p = plus + 1;
	skip_space(&t);
	if (!take_hex(&t, &f->offset) || (t.p < t.end && !ends_word(*t.p)))
		return false;
	while (to > t.start && to[-1] == ' ' && spend(&t, 1))
		to--;
	/* "FILE + 0x" is one only in brackets: else it is a sum. */
	bool spaces = to != plus && is_numbered(t);
	for (from = to; from > t.start && to - from < MAX_PLACE && spend(&t, 1) &&
			(!ends_word(from[-1]) || (spaces && from[-1] == ' '));)
		from--;
	if (from == to || !*t.work)
		return false;
	if (to != plus && !(from > t.start && (from[-1] == '(' || from[-1] == '[')))
		return false;
	f->has_offset = true;
	f->in_module = spaces; /* systemd-coredump */
	f->file = part(&t, from, to);
	f->prefix = part(&t, t.start, t.start + writer(&t, from));
	f->cut = part(&t, t.end, t.end);
	return true;
}

static void set_prefix(struct icf_log_frame *f, const struct text *t, const char *to)
{
	f->prefix = part(t, t->start, to);
}

/* The text from T's place to its end. */
static bool parse(struct text t, struct icf_log_frame *ret)
{
	static const struct icf_log_frame none = { 0 };
	const char *begin = t.p;
	bool other;
	*ret = none;
	if (rust(t, ret))
		return true;
	*ret = none;
	if (symbols(t, ret))
		return true;
	for (; t.p < t.end; t.p++) {
		struct text from = t;
		*ret = none;
		set_prefix(ret, &t, t.p);
		if (*t.p == '#' && icf_log_sanitizer(t, ret, &other))
			return true;
		if (*t.p == '#' && other)
			return false;
		*ret = none;
		set_prefix(ret, &t, t.p);
		if (*t.p == '@' && (t.p == begin || t.p[-1] == ' ') && glog(t, ret))
			return true;
		*ret = none;
		if (*t.p == ' ' && take(&from, " ip") && kernel(from, ret))
			return true;
		*ret = none;
		if (*t.p == '+' && offset(t, t.p, ret))
			return true;
	}
	*ret = none;
	t.p = begin;
	return bare(t, ret);
}

/* Does T look like a JSON object, on a line of its own? */
static bool is_object(struct text t)
{
	skip_space(&t);
	while (t.end > t.p && (t.end[-1] == ' ' || t.end[-1] == '\t'))
		t.end--;
	if (!take(&t, "{") || t.end[-1] != '}')
		return false;
	skip_space(&t);
	return take(&t, "\"");
}

/* The end of the JSON string that goes on at P. */
static const char *string_end(const char *p, const char *end)
{
	while (p < end && *p != '"')
		p += *p == '\\' && end - p > 1 ? 2 : 1;
	return p;
}

/* Do the escapes of a newline or of a carriage return end at END?  Sets *END before them. */
static bool ends_line(const char *from, const char **end)
{
	const char *p = *end;
	if (p - from < 2 || p[-2] != '\\' || (p[-1] != 'n' && p[-1] != 'r'))
		return false;
	/* After an escaped backslash it is a letter. */
	size_t n = 0;
	while (p - 2 - n > from && p[-3 - (ptrdiff_t)n] == '\\')
		n++;
	*end -= n % 2 ? 0 : 2;
	return n % 2 == 0;
}

/* The first string of the object T that holds a frame. */
static bool parse_object(struct text t, struct icf_log_frame *ret)
{
	const char *all = t.end;
	while (t.p < all) {
		if (*t.p++ != '"')
			continue;
		const char *close = string_end(t.p, all);
		t.end = close;
		while (ends_line(t.p, &t.end))
			;
		if (parse(t, ret)) {
			ret->json = true;
			return true;
		}
		t.p = close < all ? close + 1 : all;
	}
	return false;
}

bool icf_log_parse(const char *s, size_t n, struct icf_log_frame *ret)
{
	size_t work = MAX_WORK;
	struct text t = { s, s, s + n, &work };
	if (n > UINT32_MAX)
		return false;
	return is_object(t) ? parse_object(t, ret) : parse(t, ret);
}

bool icf_log_parse_mapping(const char *s, size_t n, struct icf_log_mapping *ret)
{
	size_t work = MAX_WORK;
	struct text t = { s, s, s + n, &work };
	uint64_t number;
	if (n > UINT32_MAX)
		return false;
	skip_space(&t);
	/* START-END PERM OFFSET DEVICE INODE FILE */
	if (!take_number(&t, 16, &ret->start) || !take(&t, "-") ||
	    !take_number(&t, 16, &ret->end) || ret->end <= ret->start || !skip_space(&t) ||
	    left(&t) < 5 || !strchr("r-", t.p[0]) || !strchr("w-", t.p[1]) || t.p[2] != 'x' ||
	    t.p[4] != ' ')
		return false;
	t.p += 4;
	if (!skip_space(&t) || !take_number(&t, 16, &ret->offset) || !skip_space(&t) ||
	    !take_number(&t, 16, &number) || !take(&t, ":") || !take_number(&t, 16, &number) ||
	    !skip_space(&t) || !take_number(&t, 10, &number) || !skip_space(&t) || t.p == t.end)
		return false;
	ret->file = part(&t, t.p, t.end);
	return *t.p == '/';
}
