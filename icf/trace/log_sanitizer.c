/* log_sanitizer.c: the stack frames of sanitizers.
 *
 * Without a symbolizer they write the place in the file.  With one they write names and lines of
 * the kept function, a line for each inlined call; TSan keeps the place behind these, the others
 * only the address. */
#include "icf/trace/log_scan.h"

/* "(FILE+0xOFFSET)" and perhaps " (BuildId: ID)". */
static bool take_place(struct text *t, struct icf_log_frame *f)
{
	const char *open = t->p, *close = NULL;
	if (!take(t, "("))
		return false;
	for (const char *p = t->p; p < t->end && p - t->p < MAX_PLACE && !close && spend(t, 1); p++)
		if (*p == ')' && split_offset(t, t->p, p, &f->file, &f->offset))
			close = p;
	if (!close)
		return false;
	f->has_offset = true;
	t->p = close + 1;
	struct text rest = *t;
	if (skip_space(&rest) && take(&rest, "(BuildId: ")) {
		const char *id = rest.p;
		while (rest.p < rest.end && isxdigit((unsigned char)*rest.p))
			rest.p++;
		f->build_id = part(t, id, rest.p);
		if (take(&rest, ")"))
			t->p = rest.p;
	}
	f->cut = part(t, open, t->p);
	return true;
}

/* "in NAME " before the place, where there are no lines. */
static void skip_name(struct text *t)
{
	struct text place = *t;
	struct icf_log_frame f = { 0 };
	if (!take(&place, "in "))
		return;
	for (; place.p < place.end && place.p - t->p < MAX_PLACE; place.p++) {
		struct text at = { place.start, place.p + 1, place.end, place.work };
		if (*place.p != ' ' || at.p == at.end || *at.p != '(' || !take_place(&at, &f))
			continue;
		if (at.p == at.end)
			t->p = place.p + 1;
		return;
	}
}

/* Does the text from FROM to END end in the place of a source, which TSan and ASan write behind a
 * name: <null>, FILE:LINE or a path? */
static bool ends_in_source(const char *from, const char *end)
{
	static const char null[] = " <null>";
	const size_t n = strlen(null);
	const char *p = end, *word = end;
	if ((size_t)(end - from) > n && !memcmp(end - n, null, n))
		return true;
	while (p > from && isdigit((unsigned char)p[-1]))
		p--;
	while (word > from && word[-1] != ' ')
		word--;
	return word > from && end > word &&
	       ((p < end && p > word && p[-1] == ':') || memchr(word, '/', (size_t)(end - word)));
}

/* The end of T without blanks. */
static const char *text_end(const struct text *t)
{
	const char *end = t->end;
	while (end > t->p && isblank((unsigned char)end[-1]) && spend(t, 1))
		end--;
	return end;
}

/* "NAME SOURCE (FILE+0xOFFSET)" up to the line's end.  Names have blanks and brackets, so that it
 * is read from there. */
static bool named_thread(struct text t, struct icf_log_frame *f)
{
	static const char id[] = "(BuildId: ";
	const char *end = text_end(&t), *close = end, *open = NULL;
	for (unsigned i = 0; i < 2 && close > t.p && close[-1] == ')'; i++) {
		if (!spend(&t, (size_t)(close - t.p)) || !(open = opening(t.p, close)))
			return false;
		if (i || (size_t)(close - open) <= strlen(id) || memcmp(open, id, strlen(id)) != 0)
			break;
		close = open;
		while (close > t.p && close[-1] == ' ')
			close--;
	}
	if (!open || open - t.p < 2 || open[-1] != ' ' || !ends_in_source(t.p, open - 1))
		return false;
	struct text place = { t.start, open, t.end, t.work };
	if (!take_place(&place, f) || place.p != end)
		return false;
	f->form = ICF_LOG_THREAD;
	f->name = f->cut = part(&t, t.p, open - 1);
	return true;
}

/* " in NAME SOURCE" up to the line's end, behind an address.  gdb writes "in NAME (...) at SOURCE",
 * and two blanks before the address. */
static bool named_address(struct text t, struct icf_log_frame *f)
{
	const char *from = t.p, *end = text_end(&t);
	size_t n = (size_t)(end - from);
	if (!take(&t, " in ") || t.p >= end || !spend(&t, 3 * n) || !ends_in_source(t.p, end) ||
	    memmem(from, n, ") at ", 5) || memmem(from, n, ") from ", 7) ||
	    memmem(from, n, "+0x", 3))
		return false;
	f->name = part(&t, t.p, end);
	f->place = part(&t, end, end);
	f->cut = part(&t, from, end);
	return true;
}

bool icf_log_sanitizer(struct text t, struct icf_log_frame *f, bool *other)
{
	const char *from = t.p + 1;
	*other = false;
	if (!take(&t, "#") || !take_number(&t, 10, &f->n))
		return false;
	f->number = part(&t, from, t.p);
	f->has_number = true;
	size_t blanks = skip_space(&t);
	if (!blanks)
		return false;
	from = t.p;
	if (take(&t, "<null> <null> ")) {
		f->form = ICF_LOG_THREAD;
		if (!take_place(&t, f))
			return false;
		f->cut = part(&t, from, from + strlen("<null> <null>"));
		return true;
	}
	f->form = ICF_LOG_SANITIZER;
	if (!take_hex(&t, &f->address)) {
		bool named = named_thread(t, f);
		*other = !named;
		return named;
	}
	f->has_address = true;
	const struct text behind = t;
	from = t.p;
	if (!skip_space(&t))
		return false;
	skip_name(&t);
	f->place = part(&t, t.p, t.p);
	if (!take_place(&t, f))
		return blanks == 1 && named_address(behind, f);
	f->place = part(&t, t.start + f->place.at, t.p);
	f->cut = part(&t, from, t.p);
	return true;
}
