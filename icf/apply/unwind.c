/* unwind.c: the unwind tables.  .eh_frame, .eh_frame_hdr and .gcc_except_table lose the records of
 * folded functions.  They close up if they are adjacent, unless something else refers to them.
 * They also gain records: for thunks, and for code that moved apart.  If they gain more than they
 * lose, they grow into the room before the next section.  If there is not enough room, another plan
 * is needed. */
#include "dwarf/rewrite/unwind/frame.h"
#include "elfrw/symtab.h"
#include "icf/apply/apply.h"
#include <stdlib.h>
#include <string.h>

enum { FRAME, HDR, EXCEPT, N_TABLES };

struct unwind {
	uint32_t shndx[N_TABLES]; /* 0: none */
	uint64_t size[N_TABLES];
	struct dwr_rw_except_out except;
	struct dwr_rw_frame_out frame;
};

static void find_tables(const struct elfrw_image *img, struct unwind *w)
{
	static const char *const name[N_TABLES] = { ".eh_frame", ".eh_frame_hdr",
						    ".gcc_except_table" };
	for (int t = 0; t < N_TABLES; t++)
		for (uint32_t i = 1; i < img->n_sections; i++)
			if (strcmp(img->section[i].name, name[t]) == 0 && img->section[i].data &&
			    (img->section[i].hdr.sh_flags & SHF_ALLOC)) {
				w->shndx[t] = i;
				w->size[t] = img->section[i].hdr.sh_size;
				break;
			}
	if (!w->shndx[FRAME])
		w->shndx[HDR] = 0; /* it leads nowhere */
}

static struct elfrw_err *run(struct icf_apply *a, struct unwind *w, bool again)
{
	const struct elfrw_image *img = a->prog->img;
	if (again) {
		dwr_rw_except_deinit(&w->except);
		dwr_rw_frame_deinit(&w->frame);
	}
	if (w->shndx[EXCEPT]) {
		const struct dwr_rw_except_in in = { img, &a->prog->cfi, &a->plan->map,
						     w->shndx[EXCEPT],
						     a->out->sec[w->shndx[EXCEPT]].addr };
		ELFRW_TRY(dwr_rw_gcc_except(&in, &w->except));
		w->size[EXCEPT] = w->except.size;
	}
	if (!w->shndx[FRAME])
		return NULL;
	const struct elfrw_section *hdr = w->shndx[HDR] ? &img->section[w->shndx[HDR]] : NULL;
	const struct dwr_rw_frame_in in = {
		.cfi = &a->prog->cfi,
		.map = &a->plan->map,
		.arch = a->prog->arch,
		.va = a->out->sec[w->shndx[FRAME]].addr,
		.lsda = w->shndx[EXCEPT] ? &w->except.moves : NULL,
		.hdr = hdr ? hdr->data : NULL,
		.hdr_size = hdr ? hdr->hdr.sh_size : 0,
		.hdr_va = hdr ? a->out->sec[w->shndx[HDR]].addr : 0,
	};
	ELFRW_TRY(dwr_rw_eh_frame(&in, &w->frame));
	w->size[FRAME] = w->frame.size;
	if (hdr)
		w->size[HDR] = w->frame.hdr_size;
	return NULL;
}

static bool takes_room(const Elf64_Shdr *sh)
{
	return (sh->sh_flags & SHF_ALLOC) && sh->sh_size &&
	       !((sh->sh_flags & SHF_TLS) && sh->sh_type == SHT_NOBITS);
}

static bool in_segment(const Elf64_Phdr *ph, const Elf64_Shdr *sh)
{
	return sh->sh_addr >= ph->p_vaddr && sh->sh_addr - ph->p_vaddr < ph->p_filesz;
}

/* Are sections A and B, in this order, adjacent in one segment? */
static bool side_by_side(const struct elfrw_image *img, const Elf64_Shdr *a, const Elf64_Shdr *b)
{
	uint64_t end = a->sh_addr + a->sh_size;
	if (b->sh_addr - end >= elfrw_image_page(img))
		return false;
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const Elf64_Shdr *x = &img->section[i].hdr;
		if (takes_room(x) && x->sh_addr >= end && x->sh_addr < b->sh_addr)
			return false;
	}
	for (uint32_t p = 0; p < img->n_phdrs; p++)
		if (img->phdr[p].p_type == PT_LOAD &&
		    in_segment(&img->phdr[p], a) != in_segment(&img->phdr[p], b))
			return false;
	return true;
}

/* The limit up to which section SHNDX may grow: other sections stay, and a segment shares no page
 * with the next one's. */
static uint64_t room_end(const struct elfrw_image *img, const struct unwind *w, uint32_t shndx)
{
	const Elf64_Shdr *sh = &img->section[shndx].hdr;
	uint64_t old_end = sh->sh_addr + sh->sh_size, end = UINT64_MAX;
	uint64_t page = elfrw_image_page(img);
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const Elf64_Shdr *x = &img->section[i].hdr;
		bool table = i == w->shndx[FRAME] || i == w->shndx[HDR] || i == w->shndx[EXCEPT];
		if (!table && takes_room(x) && x->sh_addr >= old_end && x->sh_addr < end)
			end = x->sh_addr;
	}
	for (uint32_t p = 0; p < img->n_phdrs; p++) {
		const Elf64_Phdr *ph = &img->phdr[p];
		if (ph->p_type != PT_LOAD)
			continue;
		uint64_t limit = UINT64_MAX;
		/* The section's own segment becomes longer, unless zeros follow or part of it is
		 * write-protected after relocation. */
		if (!in_segment(ph, sh))
			limit = ph->p_vaddr >= old_end ? ph->p_vaddr & ~(page - 1) : UINT64_MAX;
		else if ((ph->p_flags & PF_W) || ph->p_memsz != ph->p_filesz)
			limit = ph->p_vaddr + ph->p_filesz;
		end = limit < end ? limit : end;
	}
	return end > old_end ? end : old_end;
}

/* Chooses new addresses for the tables: adjacent ones close up or make room.  *FITS: none overlaps
 * anything.  true: one moved. */
static bool place(struct icf_apply *a, struct unwind *w, bool *fits)
{
	const struct elfrw_image *img = a->prog->img;
	int order[N_TABLES], n = 0;
	for (int t = 0; t < N_TABLES; t++) {
		if (!w->shndx[t])
			continue;
		int k = n++;
		for (; k > 0 && img->section[w->shndx[order[k - 1]]].hdr.sh_addr >
					img->section[w->shndx[t]].hdr.sh_addr;
		     k--)
			order[k] = order[k - 1];
		order[k] = t;
	}
	bool moved = false;
	*fits = true;
	for (int k = 0; k < n; k++) {
		const Elf64_Shdr *sh = &img->section[w->shndx[order[k]]].hdr;
		struct elfrw_outsec *s = &a->out->sec[w->shndx[order[k]]];
		uint64_t align = sh->sh_addralign > 1 ? sh->sh_addralign : 1, at = sh->sh_addr;
		if (k > 0) {
			const struct elfrw_outsec *prev = &a->out->sec[w->shndx[order[k - 1]]];
			uint64_t prev_end = prev->addr + w->size[order[k - 1]],
				 close = (prev_end + align - 1) & ~(align - 1);
			bool movable =
				!s->referenced &&
				side_by_side(img, &img->section[w->shndx[order[k - 1]]].hdr, sh);
			if (movable && (close < at || prev_end > at))
				at = close;
			*fits &= prev_end <= at;
		}
		uint64_t end = at + w->size[order[k]];
		*fits &= end <= sh->sh_addr + sh->sh_size ||
			 end <= room_end(img, w, w->shndx[order[k]]);
		moved |= at != s->addr;
		s->addr = at;
	}
	return moved;
}

/* Symbols such as __FRAME_END__ move with their record. */
static struct elfrw_err *move_symbols(struct icf_apply *a, const struct unwind *w)
{
	const struct elfrw_image *img = a->prog->img;
	for (uint32_t t = 1; t < img->n_sections; t++) {
		if (!elfrw_holds_symbols(&img->section[t]))
			continue;
		uint8_t *p = NULL;
		for (struct elfrw_symbols it = elfrw_symbols(&img->section[t], 1);
		     elfrw_symbols_next(&it);) {
			Elf64_Sym sym = it.sym;
			for (int k = 0; k < N_TABLES; k++) {
				if (!w->shndx[k] || sym.st_shndx != w->shndx[k])
					continue;
				const Elf64_Shdr *sh = &img->section[w->shndx[k]].hdr;
				uint64_t rel = sym.st_value - sh->sh_addr, to = rel;
				if (rel > sh->sh_size)
					continue;
				/* The section's own symbol, and any other that means its beginning.
				 */
				bool start =
					rel == 0 &&
					(k != FRAME || ELF64_ST_TYPE(sym.st_info) == STT_SECTION);
				if (!start && k == FRAME &&
				    !dwr_rw_moved(&w->frame.moves, rel, &to))
					to = rel < w->size[k] ? rel : w->size[k];
				if (!start && k == EXCEPT &&
				    !dwr_rw_moved(&w->except.moves, sym.st_value, &to))
					to = a->out->sec[w->shndx[k]].addr + w->size[k];
				if (start || k != EXCEPT)
					to += a->out->sec[w->shndx[k]].addr;
				if (!p)
					ELFRW_TRY(elfrw_output_edit(a->out, t, &p));
				sym.st_value = to;
				memcpy(p + it.index * sizeof sym, &sym, sizeof sym);
			}
		}
	}
	return NULL;
}

struct elfrw_err *icf_apply_unwind(struct icf_apply *a)
{
	struct unwind w = { 0 };
	/* A thunk in place is where its function's first row applies, and needs no frame
	 * description. */
	if (a->plan->in_place)
		return NULL;
	ELFRW_TRY(icf_apply_referenced(a));
	find_tables(a->prog->img, &w);
	struct elfrw_err *err = run(a, &w, false);
	bool fits = true;
	if (!err && place(a, &w, &fits) && fits) {
		err = run(a, &w, true);
		/* A table's size does not depend on its address. */
		if (!err && place(a, &w, &fits))
			fits = false;
	}
	if (err || !fits) {
		a->no_room = !err;
		dwr_rw_except_deinit(&w.except);
		dwr_rw_frame_deinit(&w.frame);
		return err;
	}
	err = move_symbols(a, &w);
	if (!err && w.shndx[FRAME]) {
		const Elf64_Shdr *sh = &a->prog->img->section[w.shndx[FRAME]].hdr;
		a->frame = sh->sh_addr;
		a->frame_size = sh->sh_size;
		a->frame_new = a->out->sec[w.shndx[FRAME]].addr;
		a->frame_moves = w.frame.moves;
		w.frame.moves = (struct dwr_rw_moves){ 0 };
		err = icf_find_frame_refs(a, w.shndx[FRAME]);
	}
	if (!err) {
		if (w.shndx[EXCEPT]) {
			elfrw_output_replace(a->out, w.shndx[EXCEPT], w.except.data, w.except.size);
			w.except.data = NULL;
		}
		if (w.shndx[FRAME]) {
			elfrw_output_replace(a->out, w.shndx[FRAME], w.frame.data, w.frame.size);
			w.frame.data = NULL;
		}
		if (w.shndx[HDR] && w.frame.hdr) {
			elfrw_output_replace(a->out, w.shndx[HDR], w.frame.hdr, w.frame.hdr_size);
			w.frame.hdr = NULL;
		}
	}
	dwr_rw_except_deinit(&w.except);
	dwr_rw_frame_deinit(&w.frame);
	return err;
}
