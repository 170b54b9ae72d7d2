/* text.c: cuts the text of `perf script` into samples.
 *
 * A sample is one line, or a header and the lines of a call chain up to an empty line, each with
 * or without branch records (" 0xFROM/0xTO/P/-/-/0 ...", the newest first), which end a sample.
 * What is no part of a sample passes through.  One sample is held at a time. */
#include "icf/profile/state.h"
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#define BUFFER        (1 << 20) /* the longest line */
#define MAX_ADDRESSES (1 << 17) /* of one sample */
#define MAX_TEXT      (1 << 24) /* bytes of one sample */

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* Reads the hexadecimal number at *C; false: there is none, or it is too large. */
static bool read_hex(const char **c, const char *end, uint64_t *ret)
{
	const char *s = *c;
	int d;
	*ret = 0;
	for (; s < end && (d = hex_digit(*s)) >= 0; s++) {
		if (*ret >> 60)
			return false;
		*ret = *ret << 4 | (unsigned)d;
	}
	bool any = s > *c;
	*c = s;
	return any;
}

static void note_odd(struct icf_profile *p)
{
	if (!p->counts.odd++)
		p->counts.first_odd = p->line;
}

/* ---- branch records ---- */

/* "0xHEX" or "0xHEX(FILE)" at *C.  LAST: the last bracket that closes in the line, or NULL. */
static bool read_end(struct icf_profile *p, const char **c, const char *end, const char *last,
		     struct icf_prof_address *a, bool *file)
{
	const char *s = *c;
	if (end - s < 3 || s[0] != '0' || s[1] != 'x')
		return false;
	s += 2;
	if (!read_hex(&s, end, &a->raw))
		return false;
	a->n = (uint32_t)(s - *c);
	*file = true;
	if (s < end && *s == '(') {
		if (!last || s > last)
			return false;
		const char *close = memchr(s, ')', (size_t)(end - s));
		*file = icf_prof_is_file(p, s + 1, (size_t)(close - s - 1));
		s = close + 1;
	}
	*c = s;
	return true;
}

/* Takes the records from C on, in the line that begins at AT in the text. */
static struct elfrw_err *take_branches(struct icf_profile *p, const char *line, const char *c,
				       const char *end, uint32_t at)
{
	bool odd = false;
	const char *last = memrchr(c, ')', (size_t)(end - c));
	while (c < end) {
		while (c < end && (*c == ' ' || *c == '\t'))
			c++;
		if (c == end)
			break;
		const char *start = c, *to;
		struct icf_prof_address a[2] = { { .at = at + (uint32_t)(c - line) }, { 0 } };
		bool in[2];
		bool good = read_end(p, &c, end, last, &a[0], &in[0]) && c < end && *c == '/';
		to = ++c;
		good = good && read_end(p, &c, end, last, &a[1], &in[1]) && (c == end || *c == '/');
		bool missed = good && end - c > 1 && c[1] == 'M';
		while (c < end && *c != ' ' && *c != '\t')
			c++;
		if (!good) {
			odd = true;
			continue;
		}
		a[1].at = at + (uint32_t)(to - line);
		struct icf_prof_branch *b = VEC_PUSH(&p->branch);
		if (!b || !VEC_RESERVE(&p->address, p->address.len + 2))
			return &elfrw_err_nomem;
		*b = (struct icf_prof_branch){ .from = (uint32_t)p->address.len,
					       .at = at + (uint32_t)(start - line),
					       .end = at + (uint32_t)(c - line),
					       .missed = missed };
		for (unsigned i = 0; i < 2; i++) {
			if (in[i])
				ELFRW_TRY(icf_prof_locate(p, &a[i], NULL, NULL));
			p->address.data[p->address.len++] = a[i];
		}
	}
	if (odd)
		note_odd(p);
	return NULL;
}

/* The first record in the line, or NULL. */
static const char *find_branches(const char *s, const char *end)
{
	const char *close = s; /* the first bracket that closes behind those looked at */
	for (const char *c = s; end - c > 6; c++) {
		c = memmem(c, (size_t)(end - c), "0x", 2);
		if (!c)
			return NULL;
		const char *t = c + 2;
		uint64_t v;
		if ((c > s && c[-1] != ' ' && c[-1] != '\t') || !read_hex(&t, end, &v))
			continue;
		if (t < end && *t == '(') {
			if (close < t && !(close = memchr(t, ')', (size_t)(end - t))))
				return NULL;
			t = close;
		}
		t += *t == ')';
		if (end - t > 2 && t[0] == '/' && t[1] == '0' && t[2] == 'x')
			return c;
	}
	return NULL;
}

/* ---- frames ---- */

static struct elfrw_err *take_frame(struct icf_profile *p, const char *line, uint32_t at,
				    const struct icf_perf_parts *f)
{
	struct icf_prof_address *a = VEC_PUSH(&p->address);
	struct icf_prof_frame *k = a ? VEC_PUSH(&p->frame) : NULL;
	if (!k)
		return &elfrw_err_nomem;
	*k = (struct icf_prof_frame){ .address = (uint32_t)(p->address.len - 1),
				      .f = *f,
				      .line = at,
				      .inlined = f->inlined };
	*a = (struct icf_prof_address){ .at = at + f->ip, .n = f->n_ip, .raw = f->address };
	return f->inlined ? NULL : icf_prof_locate(p, a, line, f);
}

/* A frame from C to END, with or without a name and a file. */
static bool parse_frame(const char *line, const char *c, const char *end, struct icf_perf_parts *f)
{
	while (end > c && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	return icf_perf_parse_frame(line, c, end, f) || icf_perf_parse_bare(line, c, end, f);
}

/* ---- headers ---- */

static bool all_digits(const char *s, const char *e)
{
	for (const char *c = s; c < e; c++)
		if (!isdigit((unsigned char)*c))
			return false;
	return e > s;
}

static void set_event(struct icf_profile *p, const char *s, size_t n)
{
	if (n >= sizeof p->event)
		n = sizeof p->event - 1;
	memcpy(p->event, s, n);
	p->event[n] = 0;
	if (!p->first_event[0])
		memcpy(p->first_event, p->event, n + 1);
	else if (strcmp(p->event, p->first_event) != 0)
		p->counts.events_differ = true;
	p->skipped = p->in->event && strcmp(p->event, p->in->event) != 0;
}

/* "COMM PID[/TID] [CPU] TIME: PERIOD EVENT:" from S to END, in the line at AT in the text. */
static void take_header(struct icf_profile *p, const char *s, const char *end, uint32_t at)
{
	const char *line = s, *pid, *behind;
	uint64_t number = 1;
	p->pid = -1;
	if (icf_perf_find_pid(s, end, &pid, &behind, &p->pid)) {
		while (pid > line && pid[-1] == ' ')
			pid--;
		while (line < pid && *line == ' ')
			line++;
		p->comm = at + (uint32_t)(line - s);
		p->n_comm = (uint32_t)(pid - line);
		s = behind;
	}
	while (s < end) {
		while (s < end && (*s == ' ' || *s == '\t'))
			s++;
		const char *e = s;
		while (e < end && *e != ' ' && *e != '\t')
			e++;
		if (e - s < 19 && all_digits(s, e)) {
			number = 0;
			for (const char *c = s; c < e; c++)
				number = 10 * number + (unsigned)(*c - '0');
		} else if (e - s > 1 && e[-1] == ':' && !isdigit((unsigned char)*s)) {
			p->weight = number;
			set_event(p, s, (size_t)(e - 1 - s));
			return;
		}
		s = e;
	}
}

/* Does a line that is not read show places in the program?  Branches by names (brstacksym), code
 * (brstackinsn), both ends of a jump, a place with more behind it. */
static bool has_places(const char *s, const char *end)
{
	size_t n = (size_t)(end - s);
	return memmem(s, n, "\tinsn:", 6) ||
	       (memmem(s, n, "+0x", 3) && (memmem(s, n, " (/", 3) || memmem(s, n, "/-/-/", 5)));
}

/* ---- lines ---- */

static struct elfrw_err *add_text(struct icf_profile *p, const char *s, size_t n, uint32_t *at)
{
	*at = (uint32_t)p->text.len;
	return VEC_APPEND(&p->text, s, n) ? NULL : &elfrw_err_nomem;
}

static struct elfrw_err *pass(struct icf_profile *p, const char *s, size_t n)
{
	if (p->in->to == ICF_PROFILE_PERFSCRIPT)
		fwrite(s, 1, n, p->in->out);
	return NULL;
}

/* A sample in one line, or the line of branch records behind a call chain. */
static struct elfrw_err *take_sample(struct icf_profile *p, const char *s, const char *c,
				     const char *end, const char *branches, size_t n)
{
	struct icf_perf_parts f;
	uint32_t at;
	if (branches != c || !p->address.len) {
		if (p->address.len || !p->chain)
			ELFRW_TRY(icf_prof_flush(p));
		ELFRW_TRY(add_text(p, s, n, &at));
		const char *head = branches ? branches : end, *ip = c;
		while (head > s && (head[-1] == ' ' || head[-1] == '\t'))
			head--;
		bool frame = head > c &&
			     (icf_perf_parse_sample(s, head, &f) || parse_frame(s, c, head, &f));
		if (!frame && head > c) {
			for (ip = head; ip > c && ip[-1] != ' ' && ip[-1] != '\t';)
				ip--;
			frame = ip > c && memrchr(c, ':', (size_t)(ip - c)) &&
				parse_frame(s, ip, head, &f);
		}
		if (head > c && (!frame || f.ip > (uint32_t)(c - s)))
			take_header(p, s, frame ? s + f.ip : head, at);
		if (frame)
			ELFRW_TRY(take_frame(p, s, at, &f));
	} else
		ELFRW_TRY(add_text(p, s, n, &at));
	if (branches)
		ELFRW_TRY(take_branches(p, s, branches, end, at));
	return icf_prof_flush(p);
}

/* Is the mapping of a file called so?  Memory without a file takes no program's place: a program
 * may copy its own code to larger pages. */
static bool is_of_file(const char *path, const char *end)
{
	static const char *const memory[] = { "//anon", "/dev/zero", "/anon_hugepage", "/SYSV" };
	for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
		size_t n = strlen(memory[i]);
		if ((size_t)(end - path) >= n && !memcmp(path, memory[i], n))
			return false;
	}
	return path < end && *path == '/';
}

static struct elfrw_err *take_record(struct icf_profile *p, const char *s, const char *end,
				     size_t n)
{
	struct icf_perf_mapping m;
	ELFRW_TRY(icf_prof_flush(p));
	if (!icf_perf_parse_mapping(s, end, &m))
		return pass(p, s, n);
	if (!icf_prof_is_file(p, m.path, (size_t)(end - m.path))) {
		if (is_of_file(m.path, end))
			ELFRW_TRY(icf_prof_other_mapped(p, &m));
		return pass(p, s, n);
	}
	ELFRW_TRY(icf_prof_mapped(p, &m));
	if (p->in->to == ICF_PROFILE_PERFSCRIPT)
		icf_prof_put_mapping(p, s, n, &m);
	return NULL;
}

static bool read_count(const char *s, const char *end, uint64_t *ret)
{
	if (end - s > 18 || !all_digits(s, end))
		return false;
	for (*ret = 0; s < end; s++)
		*ret = 10 * *ret + (unsigned)(*s - '0');
	return true;
}

/* Takes a line of N bytes; the last byte is its newline, if it has one. */
static struct elfrw_err *take_line(struct icf_profile *p, const char *s, size_t n)
{
	const char *end = s + n, *c = s;
	struct icf_perf_parts f;
	uint32_t at;
	uint64_t count;
	while (end > s && (end[-1] == '\n' || end[-1] == '\r'))
		end--;
	while (c < end && (*c == ' ' || *c == '\t'))
		c++;
	if (c == end) {
		ELFRW_TRY(add_text(p, s, n, &at));
		return icf_prof_flush(p);
	}
	if (p->address.len > MAX_ADDRESSES || p->text.len > MAX_TEXT)
		ELFRW_TRY(icf_prof_flush(p));
	if (*s == 'P' || memmem(s, (size_t)(end - s), "PERF_RECORD_", 12))
		if (memmem(s, (size_t)(end - s), "PERF_RECORD_", 12))
			return take_record(p, s, end, n);
	const char *branches = find_branches(c, end);
	if (branches)
		return take_sample(p, s, c, end, branches, n);
	if (c > s && (*s == '\t' || p->chain) && parse_frame(s, c, end, &f)) {
		p->chain = true;
		ELFRW_TRY(add_text(p, s, n, &at));
		return take_frame(p, s, at, &f);
	}
	bool more = c > s && p->address.len; /* about the frame before: its source line */
	if (!more && ((c > s && parse_frame(s, c, end, &f)) || icf_perf_parse_sample(s, end, &f)))
		return take_sample(p, s, c, end, NULL, n);
	if (has_places(s, end))
		note_odd(p);
	if (more)
		return add_text(p, s, n, &at);
	ELFRW_TRY(icf_prof_flush(p));
	bool header = *s != '#' && *s != '\t';
	if (c == s && read_count(s, end, &count))
		p->count = count;
	else if (header)
		take_header(p, s, end, (uint32_t)p->text.len);
	ELFRW_TRY(add_text(p, s, n, &at));
	p->chain = header;
	return NULL;
}

struct elfrw_err *icf_prof_read_text(struct icf_profile *p, int fd, const char *name)
{
	char *buf = malloc(BUFFER);
	struct elfrw_err *err = buf ? NULL : &elfrw_err_nomem;
	size_t len = 0;
	p->line = 0;
	for (bool more = true; more && !err;) {
		ssize_t got = read(fd, buf + len, BUFFER - len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			err = elfrw_error_errno(errno, "cannot read %s", name);
			break;
		}
		more = got > 0;
		len += (size_t)got;
		char *s = buf, *nl;
		while (!err && ((nl = memchr(s, '\n', len - (size_t)(s - buf))) ||
				(!more && s < buf + len))) {
			size_t n = nl ? (size_t)(nl + 1 - s) : len - (size_t)(s - buf);
			p->line++;
			err = elfrw_err_about(name, take_line(p, s, n));
			s += n;
		}
		len -= (size_t)(s - buf);
		memmove(buf, s, len);
		if (len == BUFFER && !err)
			err = elfrw_error("%s: line %" PRIu64
					  " is too long for the text of perf script",
					  name, p->line + 1);
		more &= !ferror(p->in->out);
	}
	free(buf);
	return err ? err : elfrw_err_about(name, icf_prof_flush(p));
}
