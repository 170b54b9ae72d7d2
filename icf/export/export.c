/* export.c: opens a program for the writers; see export.h. */
#include "icf/export/export.h"
#include "icf/export/state.h"

const struct dwr_icfold_group *icf_export_group(struct icf_export *x,
						const struct dwr_sym_piece *piece)
{
	uint32_t g;
	return x->note && dwr_sym_group_at(x->sym, piece->lo, &g) ? &x->note->group[g] : NULL;
}

struct elfrw_err *icf_export_function(struct icf_export *x, const struct dwr_sym_piece *piece,
				      uint32_t member, struct icf_export_function *ret)
{
	struct dwr_sym_frames *f = &x->frames;
	if (member == UINT32_MAX)
		ELFRW_TRY(dwr_sym_frames(x->sym, piece->lo, DWR_SYM_DEMANGLE, f));
	else
		ELFRW_TRY(
			dwr_sym_frames_for_member(x->sym, piece->lo, member, DWR_SYM_DEMANGLE, f));
	const struct dwr_sym_frame none = { 0 }, *last = f->len ? &f->data[f->len - 1] : &none;
	ret->piece = piece;
	ret->member = member;
	ret->name = last->function;
	ret->linkage = last->linkage;
	ret->file = last->start_file;
	ret->line = last->start_line;
	return dwr_sym_read_insides(x->sym, piece, member, &ret->in);
}

void icf_export_function_deinit(struct icf_export_function *f)
{
	dwr_sym_insides_deinit(&f->in);
}

/* The program, or a debug file, whose loaded sections have no contents. */
static struct elfrw_err *open_code(struct icf_export *x)
{
	struct elfrw_err *err = elfrw_image_open(&x->code, x->in->file);
	if (err && err != &elfrw_err_nomem) {
		struct elfrw_err *other = elfrw_image_open_separate(&x->code, x->in->file);
		elfrw_err_free(other ? other : err);
		err = other ? err : NULL;
	}
	ELFRW_TRY(err);
	x->has_code = true;
	for (uint32_t i = 0; i < x->code.n_phdrs; i++)
		if (x->code.phdr[i].p_type == PT_LOAD) {
			x->base = x->code.phdr[i].p_vaddr;
			break;
		}
	return NULL;
}

static struct elfrw_err *write_all(struct icf_export *x)
{
	ELFRW_TRY(open_code(x));
	ELFRW_TRY(dwr_sym_open(x->in->file, x->in->options, &x->sym));
	x->note = dwr_sym_note(x->sym);
	ELFRW_TRY(dwr_sym_pieces(x->sym, &x->pieces));
	x->counts->functions = x->pieces.len;
	switch (x->in->format) {
	case ICF_EXPORT_GSYM: ELFRW_TRY(icf_export_gsym(x)); break;
	case ICF_EXPORT_JSON: ELFRW_TRY(icf_export_json(x)); break;
	default: ELFRW_TRY(icf_export_breakpad(x));
	}
	const char *warning = x->lookup ? dwr_lookup_warning(x->lookup) : dwr_sym_warning(x->sym);
	if (warning && !(x->counts->warning = strdup(warning)))
		return &elfrw_err_nomem;
	return dwr_sym_complete(x->sym);
}

struct elfrw_err *icf_export(const struct icf_export_in *in, struct icf_export_counts *counts)
{
	const char *slash = strrchr(in->file, '/');
	struct icf_export x = { .in = in,
				.name = in->name ? in->name
					: slash  ? slash + 1
						 : in->file,
				.counts = counts };
	struct elfrw_err *err = write_all(&x);
	VEC_FREE(&x.pieces);
	VEC_FREE(&x.call);
	VEC_FREE(&x.callee);
	dwr_lookup_close(x.lookup);
	dwr_sym_frames_deinit(&x.frames);
	dwr_sym_close(x.sym);
	if (x.has_code)
		elfrw_image_close(&x.code);
	return err;
}
