/* print.c: see print.h.  Byte for byte what llvm-symbolizer 19 prints. */
#include "icf/cmd/sym/print.h"
#include "elfrw/base/printable.h"
#include <inttypes.h>
#include <string.h>

static const char *or_unknown(const char *s)
{
	return s ? s : "??";
}

static void print_verbose(FILE *f, const struct icf_sym_style *st, const struct dwr_sym_frame *fr)
{
	fputs("  Filename: ", f);
	elfrw_put_printable(f, or_unknown(fr->file));
	putc('\n', f);
	if (fr->start_line) {
		fputs("  Function start filename: ", f);
		elfrw_put_printable(f, fr->start_file ? fr->start_file : "");
		fprintf(f, "\n  Function start line: %u\n", fr->start_line);
	}
	if (fr->has_start_address && st->output == ICF_SYM_LLVM)
		fprintf(f, "  Function start address: 0x%" PRIx64 "\n", fr->start_address);
	fprintf(f, "  Line: %u\n  Column: %u\n", fr->line, fr->column);
	if (fr->discriminator)
		fprintf(f, "  Discriminator: %u\n", fr->discriminator);
}

static char *put_number(char *to, uint32_t n)
{
	char digit[10];
	unsigned len = 0;
	do
		digit[len++] = (char)('0' + n % 10);
	while (n /= 10);
	while (len)
		*to++ = digit[--len];
	return to;
}

/* ":LINE:COLUMN", without printf(), which would take as long as the two texts. */
static void print_place(FILE *f, const struct dwr_sym_frame *fr)
{
	char text[24], *to = text;
	*to++ = ':';
	to = put_number(to, fr->line);
	*to++ = ':';
	to = put_number(to, fr->column);
	*to++ = '\n';
	fwrite(text, 1, (size_t)(to - text), f);
}

static void print_plain(FILE *f, const struct icf_sym_style *st, const struct dwr_sym_frame *fr,
			bool inlined)
{
	if (st->functions) {
		if (st->pretty && inlined)
			fputs(" (inlined by) ", f);
		elfrw_put_printable(f, or_unknown(fr->function));
		fputs(st->pretty ? " at " : "\n", f);
	}
	if (st->verbose) {
		print_verbose(f, st, fr);
		return;
	}
	elfrw_put_printable(f, or_unknown(fr->file));
	if (st->output == ICF_SYM_LLVM)
		print_place(f, fr);
	else if (fr->discriminator)
		fprintf(f, ":%u (discriminator %u)\n", fr->line, fr->discriminator);
	else
		fprintf(f, ":%u\n", fr->line);
}

/* The writer of JSON: keys come sorted, as LLVM's do. */
struct json {
	FILE *f;
	bool pretty, first;
	unsigned depth;
};

static void json_newline(struct json *j)
{
	if (j->pretty)
		fprintf(j->f, "\n%*s", (int)j->depth * 2, "");
}

static void json_next(struct json *j)
{
	if (!j->first)
		putc(',', j->f);
	j->first = false;
	json_newline(j);
}

static void json_open(struct json *j, char c)
{
	putc(c, j->f);
	j->depth++;
	j->first = true;
}

static void json_close(struct json *j, char c)
{
	j->depth--;
	if (!j->first)
		json_newline(j);
	j->first = false;
	putc(c, j->f);
}

static void json_key(struct json *j, const char *key)
{
	json_next(j);
	fprintf(j->f, j->pretty ? "\"%s\": " : "\"%s\":", key);
}

static void json_text(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	elfrw_put_json(j->f, text ? text : "", "");
}

static void json_number(struct json *j, const char *key, uint32_t n)
{
	json_key(j, key);
	fprintf(j->f, "%u", n);
}

static void json_hex(struct json *j, const char *key, const uint64_t *n)
{
	json_key(j, key);
	if (n)
		fprintf(j->f, "\"0x%" PRIx64 "\"", *n);
	else
		fputs("\"\"", j->f);
}

static void json_frame(struct json *j, const struct dwr_sym_frame *fr)
{
	json_next(j);
	json_open(j, '{');
	json_number(j, "Column", fr->column);
	json_number(j, "Discriminator", fr->discriminator);
	json_text(j, "FileName", fr->file);
	json_text(j, "FunctionName", fr->function);
	json_number(j, "Line", fr->line);
	json_hex(j, "StartAddress", fr->has_start_address ? &fr->start_address : NULL);
	json_text(j, "StartFileName", fr->start_file);
	json_number(j, "StartLine", fr->start_line);
	json_close(j, '}');
}

static const struct dwr_sym_frame unknown = { .die = DWR_SYM_NO_DIE };

static void json_merged(struct json *j, const struct icf_sym_merged *m)
{
	json_key(j, "Merged");
	json_open(j, '{');
	json_key(j, "By");
	if (m->by)
		elfrw_put_json(j->f, m->by, "");
	else
		fputs("null", j->f);
	json_key(j, "Candidates");
	json_open(j, '[');
	for (size_t i = 0; i < m->n; i++) {
		json_next(j);
		elfrw_put_json(j->f, or_unknown(m->candidate[i]), "");
	}
	json_close(j, ']');
	json_key(j, "Decided");
	fputs(m->decided ? "true" : "false", j->f);
	json_close(j, '}');
}

static void json_answer(struct json *j, const struct icf_sym_answer *a,
			const struct dwr_sym_frame *frame, size_t n)
{
	json_open(j, '{');
	if (a->address)
		json_hex(j, "Address", a->address);
	if (a->error) {
		json_key(j, "Error");
		json_open(j, '{');
		json_text(j, "Message", a->error);
		json_close(j, '}');
	}
	if (a->merged)
		json_merged(j, a->merged);
	json_text(j, "ModuleName", a->module);
	if (a->error) {
		if (a->symbol)
			json_text(j, "SymName", a->symbol);
	} else {
		json_key(j, "Symbol");
		json_open(j, '[');
		for (size_t i = 0; i < n; i++)
			json_frame(j, &frame[i]);
		json_close(j, ']');
	}
	json_close(j, '}');
}

static void print_candidates(FILE *f, const struct icf_sym_merged *m)
{
	fputs("one of: ", f);
	for (size_t i = 0; i < m->n; i++) {
		fputs(i ? ", " : "", f);
		elfrw_put_printable(f, or_unknown(m->candidate[i]));
	}
	putc('\n', f);
}

void icf_sym_print(FILE *f, const struct icf_sym_style *st, const struct icf_sym_answer *a,
		   unsigned depth)
{
	const struct dwr_sym_frame *frame = a->n ? a->frame : &unknown;
	size_t n = a->n ? a->n : 1;
	if (st->output == ICF_SYM_JSON) {
		struct json j = { .f = f, .pretty = st->pretty, .depth = depth };
		json_answer(&j, a, frame, n);
		return;
	}
	if (st->addresses && a->address)
		fprintf(f, st->pretty ? "0x%" PRIx64 ": " : "0x%" PRIx64 "\n", *a->address);
	for (size_t i = 0; i < n; i++)
		print_plain(f, st, &frame[i], i > 0);
	if (a->merged && !a->merged->decided && a->merged->n && st->functions)
		print_candidates(f, a->merged);
	if (st->output == ICF_SYM_LLVM)
		putc('\n', f);
}

void icf_sym_print_line(FILE *f, const char *line)
{
	for (;; line++) {
		size_t n = strcspn(line, "\t");
		elfrw_put_printable_n(f, line, n);
		line += n;
		if (!*line)
			break;
		putc('\t', f);
	}
	putc('\n', f);
}
