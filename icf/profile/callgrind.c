/* callgrind.c: reads callgrind.out, and finds the arcs in it.
 *
 * Names are numbered in the text, and positions are relative to the last ones: both are resolved
 * here.  The text is read twice: for the arcs, and to be written. */
#include "icf/profile/callgrind.h"
#include <ctype.h>
#include <inttypes.h>
#include <xxhash.h>

void icf_prof_callgrind_close(struct icf_prof_callgrind *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->own.len; i++)
		free(c->own.data[i]);
	VEC_FREE(&c->own);
	VEC_FREE(&c->name);
	VEC_FREE(&c->cost);
	VEC_FREE(&c->part);
	VEC_FREE(&c->whole);
	dwr_sym_frames_deinit(&c->frames);
	dwr_sym_frames_deinit(&c->kept_frames);
	icf_arcs_deinit(&c->arcs);
	free(c->out);
	free(c->slot);
	free(c->data);
	free(c->path);
	free(c);
}

static struct elfrw_err *bad(const struct icf_prof_callgrind *c, const char *what)
{
	return elfrw_error("%s: line %" PRIu64 ": %s", c->path, c->line, what);
}

/* ---- names ---- */

static uint32_t *name_slot(const struct icf_prof_callgrind *c, uint8_t kind, const char *s,
			   size_t n)
{
	size_t i = XXH3_64bits_withSeed(s, n, kind) & (c->n_slots - 1);
	for (; c->slot[i]; i = (i + 1) & (c->n_slots - 1)) {
		const struct icf_cg_name *k = &c->name.data[c->slot[i] - 1];
		if (k->kind == kind && k->n == n && !memcmp(k->s, s, n))
			break;
	}
	return &c->slot[i];
}

struct elfrw_err *icf_cg_intern(struct icf_prof_callgrind *c, uint8_t kind, const char *s, size_t n,
				uint32_t *ret)
{
	if (2 * (c->name.len + 1) > c->n_slots) {
		size_t more = c->n_slots ? 2 * c->n_slots : 4096;
		uint32_t *slot = calloc(more, sizeof *slot);
		if (!slot)
			return &elfrw_err_nomem;
		free(c->slot);
		c->slot = slot;
		c->n_slots = more;
		for (size_t i = 0; i < c->name.len; i++) {
			const struct icf_cg_name *k = &c->name.data[i];
			*name_slot(c, k->kind, k->s, k->n) = (uint32_t)i + 1;
		}
	}
	uint32_t *slot = name_slot(c, kind, s, n);
	if (!*slot) {
		struct icf_cg_name *k = VEC_PUSH(&c->name);
		if (!k)
			return &elfrw_err_nomem;
		*k = (struct icf_cg_name){ .s = s, .n = (uint32_t)n, .kind = kind };
		*slot = (uint32_t)c->name.len;
	}
	*ret = *slot - 1;
	return NULL;
}

/* "NAME", "(NUMBER) NAME" or "(NUMBER)". */
static struct elfrw_err *read_name(struct icf_prof_callgrind *c, uint8_t kind, const char *s,
				   const char *end, uint32_t *ret)
{
	uint32_t number;
	while (s < end && *s == ' ')
		s++;
	const char *close = end - s > 2 && *s == '(' && isdigit((unsigned char)s[1])
				    ? memchr(s, ')', (size_t)(end - s))
				    : NULL;
	if (!close)
		return icf_cg_intern(c, 0, s, (size_t)(end - s), ret);
	ELFRW_TRY(icf_cg_intern(c, kind, s, (size_t)(close - s), &number));
	for (s = close + 1; s < end && *s == ' ';)
		s++;
	if (s < end) {
		ELFRW_TRY(icf_cg_intern(c, 0, s, (size_t)(end - s), ret));
		c->name.data[number].value = *ret;
		return NULL;
	}
	*ret = c->name.data[number].value;
	return *ret ? NULL : bad(c, "a number that stands for no name");
}

/* ---- numbers ---- */

static bool read_number(const char **s, const char *end, uint64_t *ret)
{
	bool hex = end - *s > 2 && (*s)[0] == '0' && ((*s)[1] == 'x' || (*s)[1] == 'X');
	const char *c = *s + (hex ? 2 : 0), *start = c;
	for (*ret = 0;
	     c < end && isxdigit((unsigned char)*c) && (hex || isdigit((unsigned char)*c)); c++) {
		unsigned d = *c <= '9' ? (unsigned)(*c - '0') : (unsigned)((*c | 32) - 'a' + 10);
		if (hex ? *ret >> 60 != 0 : *ret > (UINT64_MAX - d) / 10)
			return false;
		*ret = *ret * (hex ? 16 : 10) + d;
	}
	*s = c;
	return c > start;
}

static void skip_blanks(const char **s, const char *end)
{
	while (*s < end && (**s == ' ' || **s == '\t'))
		++*s;
}

static bool read_part(const char **s, const char *end, uint64_t last, uint64_t *ret)
{
	uint64_t by;
	skip_blanks(s, end);
	char c = *s < end ? **s : 0;
	if (c == '*') {
		++*s;
		*ret = last;
		return true;
	}
	if (c != '+' && c != '-')
		return read_number(s, end, ret);
	++*s;
	if (!read_number(s, end, &by))
		return false;
	*ret = c == '+' ? last + by : last - by;
	return true;
}

static bool read_place(const struct icf_prof_callgrind *c, const char **s, const char *end,
		       struct icf_cg_place *ret)
{
	const struct icf_cg_place last = c->now.at;
	*ret = (struct icf_cg_place){ 0 };
	return read_part(s, end, last.addr, &ret->addr) &&
	       (!c->lines || read_part(s, end, last.line, &ret->line));
}

/* "PLACE COST...": the end of every item. */
static struct elfrw_err *read_costs(struct icf_prof_callgrind *c, const char *s, const char *end)
{
	struct icf_cg_item *k = &c->now;
	if (!read_place(c, &s, end, &k->at))
		return bad(c, "no position");
	memset(k->cost, 0, sizeof k->cost);
	for (k->n_costs = 0;; k->n_costs++) {
		skip_blanks(&s, end);
		if (s == end)
			return NULL;
		if (k->n_costs == c->arcs.n_events || !read_number(&s, end, &k->cost[k->n_costs]))
			return bad(c, "costs that cannot be read");
	}
}

/* ---- lines ---- */

/* "positions:" and "events:"; others say nothing here. */
static struct elfrw_err *read_header(struct icf_prof_callgrind *c, const char *s, const char *end)
{
	size_t n = (size_t)(end - s);
	if (n > 10 && !memcmp(s, "positions:", 10)) {
		c->lines = memmem(s, n, "line", 4);
		if (!memmem(s, n, "instr", 5) || memmem(s, n, " bb", 3))
			return bad(c, "calls have no addresses, which decide which function was "
				      "called: valgrind --dump-instr=yes records them");
		c->body = true;
	} else if (n > 7 && !memcmp(s, "events:", 7)) {
		unsigned events = 0;
		if (!c->body)
			return bad(c, "calls have no addresses, which decide which function was "
				      "called: valgrind --dump-instr=yes records them");
		for (const char *k = s + 7; k < end; k++)
			events += *k != ' ' && k[-1] == ' ';
		if (events > ICF_ARC_EVENTS || !events ||
		    (c->arcs.n_events && events != c->arcs.n_events))
			return bad(c, "too many events, or not as many as in the part before");
		c->arcs.n_events = events;
	}
	return NULL;
}

static const struct {
	const char *key;
	uint8_t kind;
} keys[] = { { "ob=", ICF_CG_OB },  { "fl=", ICF_CG_FL },  { "fi=", ICF_CG_FL },
	     { "fe=", ICF_CG_FL },  { "fn=", ICF_CG_FN },  { "cob=", ICF_CG_OB },
	     { "cfi=", ICF_CG_FL }, { "cfl=", ICF_CG_FL }, { "cfn=", ICF_CG_FN },
	     { "jfi=", ICF_CG_FL }, { "jfn=", ICF_CG_FN } };

/* "KEY=NAME"; *IS false: it is no such line. */
static struct elfrw_err *read_key(struct icf_prof_callgrind *c, const char *s, const char *end,
				  bool *is)
{
	struct icf_cg_item *k = &c->now;
	uint32_t *const where[] = { &k->ob,    &k->file,  &k->file, &k->file,  &k->fn, &k->cob,
				    &k->cfile, &k->cfile, &k->cfn,  &k->cfile, &k->cfn };
	*is = false;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		size_t n = strlen(keys[i].key);
		if ((size_t)(end - s) < n || memcmp(s, keys[i].key, n) != 0)
			continue;
		*is = true;
		ELFRW_TRY(read_name(c, keys[i].kind, s + n, end, where[i]));
		if (where[i] == &k->fn)
			k->fl = k->file;
		if (where[i] == &k->fn || where[i] == &k->cfn)
			c->linkage |= c->name.data[*where[i]].n > 2 &&
				      !memcmp(c->name.data[*where[i]].s, "_Z", 2);
		return NULL;
	}
	return NULL;
}

/* "calls=N PLACE", "jump=N PLACE", "jcnd=N/M PLACE" or "jcnd=N M PLACE": the next line has the
 * rest. */
static struct elfrw_err *read_transfer(struct icf_prof_callgrind *c, const char *s, const char *end)
{
	struct icf_cg_item *k = &c->now;
	const char *v = memchr(s, '=', (size_t)(end - s)) + 1;
	k->kind = *s == 'c' ? ICF_CG_CALL : ICF_CG_JUMP;
	k->conditional = s[1] == 'c';
	skip_blanks(&v, end);
	bool good = read_number(&v, end, &k->n);
	if (k->conditional && good) {
		v += v < end && *v == '/';
		skip_blanks(&v, end);
		good = read_number(&v, end, &k->executed);
	}
	if (!good || !read_place(c, &v, end, &k->to))
		return bad(c, "a call or jump that cannot be read");
	return NULL;
}

/* Reads the line from S to END; *DONE: c->now is complete. */
static struct elfrw_err *read_line(struct icf_prof_callgrind *c, const char *s, const char *end,
				   bool *done)
{
	struct icf_cg_item *k = &c->now;
	bool is;
	size_t n = (size_t)(end - s);
	*done = true;
	if (!n || *s == '#')
		return NULL;
	if (isdigit((unsigned char)*s) || *s == '+' || *s == '-' || *s == '*') {
		if (!c->arcs.n_events || !k->fn)
			return bad(c, "costs of no function, or before the names of events");
		if (k->kind == ICF_CG_OTHER)
			k->kind = ICF_CG_COST;
		return read_costs(c, s, end);
	}
	if (k->kind != ICF_CG_OTHER)
		return bad(c, "the place of a call is missing");
	ELFRW_TRY(read_key(c, s, end, &is));
	*done = false;
	if (is)
		return NULL;
	if (n > 6 && (!memcmp(s, "calls=", 6) || !memcmp(s, "jump=", 5) || !memcmp(s, "jcnd=", 5)))
		return read_transfer(c, s, end);
	*done = true;
	return read_header(c, s, end);
}

struct elfrw_err *icf_cg_next(struct icf_prof_callgrind *c, struct icf_cg_item *item, bool *more)
{
	bool done = false;
	struct icf_cg_item *k = &c->now;
	if (k->kind == ICF_CG_CALL || k->kind == ICF_CG_JUMP)
		k->cob = k->cfile = k->cfn = 0;
	k->kind = ICF_CG_OTHER;
	*more = true;
	while (!done) {
		if (c->pos == c->size) {
			*more = false;
			return k->kind == ICF_CG_OTHER ? NULL : bad(c, "the text ends in a call");
		}
		const char *s = (const char *)c->data + c->pos;
		const char *nl = memchr(s, '\n', c->size - c->pos);
		const char *end = nl ? nl : s + (c->size - c->pos);
		c->pos += (size_t)(end - s) + (nl != NULL);
		c->line++;
		end -= end > s && end[-1] == '\r';
		k->text = s;
		k->n_text = (size_t)(end - s);
		ELFRW_TRY(read_line(c, s, end, &done));
	}
	*item = *k;
	item->cob = k->cob ? k->cob : k->ob;
	item->cfile = k->cfile ? k->cfile : k->file;
	return NULL;
}

void icf_cg_rewind(struct icf_prof_callgrind *c)
{
	c->pos = 0;
	c->line = 0;
	c->now = (struct icf_cg_item){ 0 };
}

bool icf_cg_is_program(struct icf_profile *p, uint32_t ob)
{
	const struct icf_cg_name *n = &p->callgrind->name.data[ob];
	return icf_prof_is_file(p, n->s, n->n);
}

/* ---- arcs ---- */

static struct elfrw_err *add_item(struct icf_profile *p, const struct icf_cg_item *k)
{
	struct icf_arcs *a = &p->callgrind->arcs;
	struct icf_arc arc = { .from = ICF_PROF_NONE, .to = ICF_PROF_NONE, .n = k->n };
	struct icf_arc_site site;
	const struct icf_prof_place *there;
	bool in = icf_cg_is_program(p, k->ob);
	if (in)
		ELFRW_TRY(icf_arcs_context(p, a, k->fn, k->at.addr, &arc.from));
	if (k->kind != ICF_CG_CALL || !icf_cg_is_program(p, k->cob))
		return NULL;
	if (!k->cfn)
		return bad(p->callgrind, "a call of a function without a name");
	ELFRW_TRY(icf_arcs_context(p, a, k->cfn, k->to.addr, &arc.to));
	if (arc.to == ICF_PROF_NONE)
		return NULL;
	ELFRW_TRY(icf_prof_place(p, k->to.addr, &there));
	arc.start = there->p.start;
	bool known = arc.from != ICF_PROF_NONE;
	if (known)
		ELFRW_TRY(icf_arcs_site(p, k->at.addr, &site));
	return icf_arcs_add(a, &arc, &site, known, k->cost);
}

struct elfrw_err *icf_prof_callgrind_read(struct icf_profile *p, int fd, const char *name)
{
	uint32_t none;
	bool more;
	struct icf_cg_item item;
	if (p->callgrind)
		return elfrw_error("%s: one callgrind.out can be read at a time", name);
	struct icf_prof_callgrind *c = p->callgrind = calloc(1, sizeof *p->callgrind);
	if (!c || !(c->path = strdup(name)))
		return &elfrw_err_nomem;
	ELFRW_TRY(icf_prof_read_all(fd, name, &c->data, &c->size));
	ELFRW_TRY(icf_cg_intern(c, 0, "", 0, &none)); /* number 0: none */
	for (;;) {
		ELFRW_TRY(icf_cg_next(c, &item, &more));
		if (!more)
			break;
		if (item.kind != ICF_CG_OTHER)
			ELFRW_TRY(add_item(p, &item));
	}
	return c->body ? NULL : elfrw_error("%s: it is no callgrind.out", name);
}

struct elfrw_err *icf_prof_callgrind_put(struct icf_profile *p)
{
	if (!p->callgrind)
		return elfrw_error("no profile was read");
	icf_cg_rewind(p->callgrind);
	ELFRW_TRY(icf_arcs_solve(p, &p->callgrind->arcs));
	icf_arcs_count(p, &p->callgrind->arcs);
	return icf_cg_put(p);
}
