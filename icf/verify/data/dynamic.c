/* dynamic.c: data of the dynamic linker: relocations one for one, .dynamic, and the entry point. */
#include "icf/verify/state.h"
#include <string.h>

/* Does OUT's addend B mean what IN's addend A means? */
static bool addend_ok(const struct icf_vclaim *c, const struct icf_vword *words, size_t n,
		      uint64_t a, uint64_t b, uint64_t *want)
{
	*want = a;
	for (size_t i = 0; i < n; i++)
		if (words[i].kind == ICF_VW_DYNAMIC && words[i].target == a) {
			*want = words[i].want;
			return b == words[i].want || b == words[i].alt;
		}
	*want = icf_v_data(c, a);
	return b == *want;
}

static void check_rela(const struct icf_vclaim *c, const struct icf_vwords *words,
		       struct icf_vlog *log, const struct elfrw_section *s,
		       const struct elfrw_section *o)
{
	if (s->hdr.sh_size != o->hdr.sh_size) {
		icf_vlog_bad(log, ICF_VC_DYNRELOC, "section: %s: expected %llu bytes, found %llu",
			     s->name, ICF_VX(s->hdr.sh_size), ICF_VX(o->hdr.sh_size));
		return;
	}
	size_t w = 0;
	uint64_t last = 0;
	for (uint64_t off = 0; off + sizeof(Elf64_Rela) <= s->hdr.sh_size;
	     off += sizeof(Elf64_Rela)) {
		Elf64_Rela a, b;
		memcpy(&a, s->data + off, sizeof a);
		memcpy(&b, o->data + off, sizeof b);
		log->checked[ICF_VC_DYNRELOC]++;
		if (a.r_offset != b.r_offset || a.r_info != b.r_info) {
			icf_vlog_bad(
				log, ICF_VC_DYNRELOC,
				"relocation: %s+0x%llx: expected place 0x%llx and type 0x%llx, found 0x%llx and 0x%llx",
				s->name, ICF_VX(off), ICF_VX(a.r_offset), ICF_VX(a.r_info),
				ICF_VX(b.r_offset), ICF_VX(b.r_info));
			continue;
		}
		uint8_t kind = c->arch->reloc((uint32_t)ELF64_R_TYPE(a.r_info)).kind;
		if (kind != ELFRW_RELOC_RELATIVE && kind != ELFRW_RELOC_IRELATIVE) {
			if (a.r_addend != b.r_addend)
				icf_vlog_bad(
					log, ICF_VC_DYNRELOC,
					"addend: %s+0x%llx (0x%llx): expected 0x%llx, found 0x%llx",
					s->name, ICF_VX(off), ICF_VX(a.r_offset),
					ICF_VX(a.r_addend), ICF_VX(b.r_addend));
			continue;
		}
		/* Places are mostly in order. */
		if (a.r_offset < last)
			w = icf_v_word_from(words, a.r_offset);
		last = a.r_offset;
		while (w < words->word.len && words->word.data[w].place < a.r_offset)
			w++;
		size_t n = 0;
		while (w + n < words->word.len && words->word.data[w + n].place == a.r_offset)
			n++;
		uint64_t want;
		if (!addend_ok(c, words->word.data + w, n, (uint64_t)a.r_addend,
			       (uint64_t)b.r_addend, &want)) {
			char name[200];
			icf_vlog_bad(
				log, ICF_VC_DYNRELOC,
				"addend: %s+0x%llx, place 0x%llx, %s (0x%llx -> 0x%llx): expected 0x%llx, found 0x%llx",
				s->name, ICF_VX(off), ICF_VX(a.r_offset),
				icf_v_where(c, (uint64_t)a.r_addend, name), ICF_VX(a.r_addend),
				ICF_VX(want), ICF_VX(want), ICF_VX(b.r_addend));
		}
	}
}

static void check_dynamic(const struct icf_vclaim *c, struct icf_vlog *log,
			  const struct elfrw_section *s, const struct elfrw_section *o)
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
	for (uint32_t i = 1; i < c->in.n_sections; i++) {
		const struct elfrw_section *s = &c->in.section[i];
		uint32_t type = s->hdr.sh_type;
		if (!(s->hdr.sh_flags & SHF_ALLOC) || !s->data ||
		    (type != SHT_RELA && type != SHT_DYNAMIC))
			continue;
		const struct elfrw_section *o = c->to_out[i] ? &c->out.section[c->to_out[i]] : NULL;
		if (!o || !o->data)
			icf_vlog_bad(log, ICF_VC_DYNRELOC,
				     "section: %s: expected in the output, found nothing", s->name);
		else if (type == SHT_RELA)
			check_rela(c, words, log, s, o);
		else
			check_dynamic(c, log, s, o);
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
