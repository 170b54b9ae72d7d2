/* dynamic.c: data of the dynamic linker: relocations one for one, .dynamic, and the entry point. */
#include "icf/verify/state.h"
#include <string.h>

/* The value of an entry of IN's .dynamic, or 0. */
static uint64_t value_of(const struct icf_vclaim *c, int64_t tag)
{
	const struct elfrw_section *s = &c->in.section[c->in.dynamic];
	for (uint64_t off = 0; c->in.dynamic && s->data && off + 16 <= s->hdr.sh_size; off += 16) {
		if (elfrw_get64(s->data + off) == DT_NULL)
			break;
		if ((int64_t)elfrw_get64(s->data + off) == tag)
			return elfrw_get64(s->data + off + 8);
	}
	return 0;
}

/* The relocations that went with lost words: how many of those that DT_RELA tells of, and of the
 * first DT_RELACOUNT ones. */
struct gone {
	uint64_t n, lead;
};

/* Does OUT's addend B mean what IN's addend A means? */
static bool addend_ok(const struct icf_vclaim *c, const struct icf_vword *words, size_t n,
		      uint64_t a, uint64_t b, uint64_t *want)
{
	*want = a;
	for (size_t i = 0; i < n; i++)
		if (words[i].kind == ICF_VW_DYNAMIC && words[i].target == a) {
			/* The start of the file, where no code is. */
			if (words[i].lost)
				*want = 0;
			if (words[i].lost)
				return b == 0;
			*want = words[i].want;
			return b == words[i].want || b == words[i].alt;
		}
	*want = icf_v_data(c, a);
	return b == *want;
}

/* Is relocation A of IN that of a lost word? */
static bool is_lost(const struct icf_vclaim *c, const struct icf_vwords *words, const Elf64_Rela *a)
{
	if (c->arch->reloc((uint32_t)ELF64_R_TYPE(a->r_info)).kind != ELFRW_RELOC_RELATIVE)
		return false;
	for (size_t w = icf_v_word_from(words, a->r_offset);
	     w < words->word.len && words->word.data[w].place == a->r_offset; w++)
		if (words->word.data[w].lost && words->word.data[w].kind == ICF_VW_DYNAMIC &&
		    words->word.data[w].target == (uint64_t)a->r_addend)
			return true;
	return false;
}

/* The relocations of section S of IN, in order. */
struct reading {
	const struct icf_vclaim *c;
	const struct icf_vwords *words;
	struct icf_vlog *log;
	const struct elfrw_section *s;
	size_t w;      /* the first word at the last place or behind it */
	uint64_t last; /* place */
};

/* Compares A, OFF bytes from the start of its section of IN, with B of OUT. */
static void check_one(struct reading *rd, uint64_t off, const Elf64_Rela *a, const Elf64_Rela *b)
{
	const struct icf_vwords *words = rd->words;
	rd->log->checked[ICF_VC_DYNRELOC]++;
	if (a->r_offset != b->r_offset || a->r_info != b->r_info) {
		icf_vlog_bad(
			rd->log, ICF_VC_DYNRELOC,
			"relocation: %s+0x%llx: expected place 0x%llx and type 0x%llx, found 0x%llx and 0x%llx",
			rd->s->name, ICF_VX(off), ICF_VX(a->r_offset), ICF_VX(a->r_info),
			ICF_VX(b->r_offset), ICF_VX(b->r_info));
		return;
	}
	uint8_t kind = rd->c->arch->reloc((uint32_t)ELF64_R_TYPE(a->r_info)).kind;
	if (kind != ELFRW_RELOC_RELATIVE && kind != ELFRW_RELOC_IRELATIVE) {
		if (a->r_addend != b->r_addend)
			icf_vlog_bad(rd->log, ICF_VC_DYNRELOC,
				     "addend: %s+0x%llx (0x%llx): expected 0x%llx, found 0x%llx",
				     rd->s->name, ICF_VX(off), ICF_VX(a->r_offset),
				     ICF_VX(a->r_addend), ICF_VX(b->r_addend));
		return;
	}
	/* Places are mostly in order. */
	if (a->r_offset < rd->last)
		rd->w = icf_v_word_from(words, a->r_offset);
	rd->last = a->r_offset;
	while (rd->w < words->word.len && words->word.data[rd->w].place < a->r_offset)
		rd->w++;
	size_t n = 0;
	while (rd->w + n < words->word.len && words->word.data[rd->w + n].place == a->r_offset)
		n++;
	uint64_t want;
	if (!addend_ok(rd->c, words->word.data + rd->w, n, (uint64_t)a->r_addend,
		       (uint64_t)b->r_addend, &want)) {
		char name[200];
		icf_vlog_bad(
			rd->log, ICF_VC_DYNRELOC,
			"addend: %s+0x%llx, place 0x%llx, %s (0x%llx -> 0x%llx): expected 0x%llx, found 0x%llx",
			rd->s->name, ICF_VX(off), ICF_VX(a->r_offset),
			icf_v_where(rd->c, (uint64_t)a->r_addend, name), ICF_VX(a->r_addend),
			ICF_VX(want), ICF_VX(want), ICF_VX(b->r_addend));
	}
}

static void check_rela(const struct icf_vclaim *c, const struct icf_vwords *words,
		       struct icf_vlog *log, const struct elfrw_section *s,
		       const struct elfrw_section *o, struct gone *gone)
{
	struct reading rd = { .c = c, .words = words, .log = log, .s = s };
	/* Only the table that .dynamic describes can become shorter. */
	bool all =
		s->hdr.sh_addr == value_of(c, DT_RELA) && s->hdr.sh_size == value_of(c, DT_RELASZ);
	uint64_t lead = value_of(c, DT_RELACOUNT), missing = s->hdr.sh_size - o->hdr.sh_size, n = 0;
	if (s->hdr.sh_size < o->hdr.sh_size || (missing && !all) || missing % sizeof(Elf64_Rela)) {
		icf_vlog_bad(log, ICF_VC_DYNRELOC, "section: %s: expected %llu bytes, found %llu",
			     s->name, ICF_VX(s->hdr.sh_size), ICF_VX(o->hdr.sh_size));
		return;
	}
	missing /= sizeof(Elf64_Rela);
	for (uint64_t off = 0; off + sizeof(Elf64_Rela) <= s->hdr.sh_size;
	     off += sizeof(Elf64_Rela)) {
		Elf64_Rela a, b;
		memcpy(&a, s->data + off, sizeof a);
		if (n < missing && is_lost(c, words, &a)) {
			n++;
			gone->lead += off / sizeof a < lead;
			continue;
		}
		if (off - n * sizeof a + sizeof b > o->hdr.sh_size)
			break;
		memcpy(&b, o->data + (off - n * sizeof a), sizeof b);
		check_one(&rd, off, &a, &b);
	}
	gone->n += n;
	if (n != missing)
		icf_vlog_bad(
			log, ICF_VC_DYNRELOC,
			"section: %s: expected %llu relocations that nothing needs, found %llu missing",
			s->name, ICF_VX(n), ICF_VX(missing));
}

static void check_dynamic(const struct icf_vclaim *c, struct icf_vlog *log,
			  const struct elfrw_section *s, const struct elfrw_section *o,
			  const struct gone *gone)
{
	bool end = false;
	if (s->hdr.sh_size != o->hdr.sh_size) {
		icf_vlog_bad(log, ICF_VC_DYNAMIC, "section: %s: expected %llu bytes, found %llu",
			     s->name, ICF_VX(s->hdr.sh_size), ICF_VX(o->hdr.sh_size));
		return;
	}
	for (uint64_t off = 0; off + sizeof(Elf64_Dyn) <= s->hdr.sh_size;
	     off += sizeof(Elf64_Dyn)) {
		Elf64_Dyn a, b;
		memcpy(&a, s->data + off, sizeof a);
		memcpy(&b, o->data + off, sizeof b);
		uint64_t want = a.d_un.d_val;
		log->checked[ICF_VC_DYNAMIC]++;
		if (!end && elfrw_dynamic_is_code(c->arch, a.d_tag))
			icf_v_code(c, a.d_un.d_ptr, &want);
		if (!end && a.d_tag == DT_RELASZ)
			want -= gone->n * sizeof(Elf64_Rela);
		if (!end && a.d_tag == DT_RELACOUNT)
			want -= gone->lead;
		end |= a.d_tag == DT_NULL;
		if (a.d_tag != b.d_tag || b.d_un.d_val != want)
			icf_vlog_bad(
				log, ICF_VC_DYNAMIC,
				"entry: .dynamic+0x%llx, tag 0x%llx (0x%llx -> 0x%llx): expected 0x%llx, found tag 0x%llx, 0x%llx",
				ICF_VX(off), ICF_VX(a.d_tag), ICF_VX(a.d_un.d_val), ICF_VX(want),
				ICF_VX(want), ICF_VX(b.d_tag), ICF_VX(b.d_un.d_val));
	}
}

struct elfrw_err *icf_v_check_dynamic(const struct icf_vclaim *c, const struct icf_vwords *words,
				      struct icf_vlog *log)
{
	struct gone gone = { 0 };
	/* Relocations first; .dynamic tells how many there are. */
	for (uint32_t n = 1; n < 2 * c->in.n_sections; n++) {
		uint32_t i = n % c->in.n_sections, type = c->in.section[i].hdr.sh_type;
		const struct elfrw_section *s = &c->in.section[i];
		if (!(s->hdr.sh_flags & SHF_ALLOC) || !s->data ||
		    type != (n < c->in.n_sections ? SHT_RELA : SHT_DYNAMIC))
			continue;
		const struct elfrw_section *o = c->to_out[i] ? &c->out.section[c->to_out[i]] : NULL;
		if (!o || !o->data)
			icf_vlog_bad(log, ICF_VC_DYNRELOC,
				     "section: %s: expected in the output, found nothing", s->name);
		else if (type == SHT_RELA)
			check_rela(c, words, log, s, o, &gone);
		else
			check_dynamic(c, log, s, o, &gone);
	}
	uint64_t entry = c->in.ehdr.e_entry, want = entry;
	if (entry) {
		log->checked[ICF_VC_DYNAMIC]++;
		icf_v_code(c, entry, &want);
	}
	if (c->out.ehdr.e_entry != want)
		icf_vlog_bad(log, ICF_VC_DYNAMIC,
			     "entry point: (0x%llx -> 0x%llx): expected 0x%llx, found 0x%llx",
			     ICF_VX(entry), ICF_VX(want), ICF_VX(want),
			     ICF_VX(c->out.ehdr.e_entry));
	return NULL;
}
