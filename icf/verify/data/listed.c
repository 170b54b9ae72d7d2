/* listed.c: sections whose names are C identifiers are lists that the program or a tool reads:
 * places of traps, of faults, of code to be patched.
 *
 * If an aligned word of such a list leads from its own place to an instruction inside a function,
 * the record may be about this place.  Then the function must be where it was, and nothing else may
 * be folded with it: the list would say of one function what is true of the other.  LLVM's stack
 * maps and fault maps, and lists of places to be patched, name functions by their addresses: these
 * may move.  Cost: each word once; the instructions of functions that moved or are shared, and that
 * a word leads into. */
#include "elfrw/base/search.h"
#include "icf/verify/state.h"
#include <ctype.h>
#include <string.h>

static bool is_list(const struct elfrw_section *s)
{
	const char *p = s->name;
	if (s->hdr.sh_type != SHT_PROGBITS || !s->data || !(s->hdr.sh_flags & SHF_ALLOC) ||
	    (s->hdr.sh_flags & (SHF_EXECINSTR | SHF_TLS)) || isdigit((unsigned char)*p))
		return false;
	while (isalnum((unsigned char)*p) || *p == '_')
		p++;
	return *p == '\0' && p > s->name;
}

/* Does an instruction of U, but not its first, begin at VA? */
static bool begins_inside(const struct icf_v *v, const struct icf_vunit *u, uint64_t va)
{
	const struct icf_vexec *e = &v->claim.exec.data[u->exec];
	uint64_t at = u->old;
	struct elfrw_insn in;
	while (at < va && v->claim.arch->decode(e->old_data + (at - e->old), u->end - at, at, &in))
		at += in.len;
	return at == va && va != u->old;
}

/* Is the word at VA the loader's, or explained otherwise? */
static bool is_known(const struct icf_v *v, uint64_t va)
{
	size_t w = icf_v_word_from(&v->words, va > 7 ? va - 7 : 0);
	for (; w < v->words.word.len && v->words.word.data[w].place < va + 4; w++)
		if (v->words.word.data[w].place + v->words.word.data[w].size > va)
			return true;
	size_t i = LOWER_BOUND(0, v->words.dynreloc.len, mid,
			       v->words.dynreloc.data[mid].place + 8 <= va);
	return i < v->words.dynreloc.len && v->words.dynreloc.data[i].place < va + 4;
}

/* LLVM's XRay has records of 32 bytes: a place and its function, 8 bytes each, then small numbers,
 * of which the third is the version (compiler-rt, xray_interface_internal.h). */
static bool has_sleds(const struct elfrw_section *s)
{
	return strcmp(s->name, "xray_instr_map") == 0 && s->hdr.sh_size % 32 == 0;
}

/* May an address or a distance of 4 or 8 bytes stand OFF bytes from the start of S? */
static bool may_lead(const struct elfrw_section *s, uint64_t off)
{
	return !has_sleds(s) || off % 32 == 0 || off % 32 == 8;
}

/* Is the word OFF bytes from the start of S a distance from its own place?  Those of XRay's records
 * are, from version 2 on. */
static bool is_distance(const struct elfrw_section *s, uint64_t off)
{
	return has_sleds(s) && s->data[off / 32 * 32 + 18] >= 2;
}

/* Do records in S name functions, and tell of places in them? */
static bool is_map(const struct elfrw_section *s)
{
	static const char *const name[] = { ".llvm_stackmaps", ".llvm_faultmaps",
					    "__patchable_function_entries", "__mcount_loc",
					    "xray_instr_map" };
	bool ret = false;
	for (size_t i = 0; i < sizeof name / sizeof *name; i++)
		ret |= strcmp(s->name, name[i]) == 0;
	return ret && s->data && (s->hdr.sh_flags & SHF_ALLOC);
}

/* Checks the function that the word OFF bytes from the start of S leads to; STILL: nothing adjusts
 * the word to a function that moves. */
static void check_mapped(struct icf_v *v, const struct elfrw_section *s, uint64_t off, uint64_t to,
			 bool still)
{
	uint32_t k = icf_v_find(&v->claim, to);
	const struct icf_vunit *u = k != ICF_V_NONE ? &v->claim.unit.data[k] : NULL;
	char name[200];
	if (u && ((u->flags & ICF_V_FOLDED) || u->shared || (still && u->body != u->old)))
		icf_vlog_bad(
			&v->log, ICF_VC_WORD,
			"list: %s+0x%llx, of %s (0x%llx): expected a function that %sis not shared",
			s->name, ICF_VX(off), icf_v_where(&v->claim, to, name), ICF_VX(to),
			still ? "stays and " : "");
}

/* Does a relocation tell what the word at VA leads to? */
static bool is_told(const struct icf_v *v, uint64_t va)
{
	size_t w = icf_v_word_from(&v->words, va);
	return w < v->words.word.len && v->words.word.data[w].place == va;
}

/* Checks the addresses in S: those that relocations tell, those of fixed programs, and distances.
 * What no relocation tells of is no address in a program that the loader may place anywhere. */
static void check_map(struct icf_v *v, const struct elfrw_section *s)
{
	uint64_t lo = s->hdr.sh_addr;
	bool fixed = v->claim.in.ehdr.e_type == ET_EXEC;
	for (size_t w = icf_v_word_from(&v->words, lo);
	     w < v->words.word.len && v->words.word.data[w].place - lo < s->hdr.sh_size; w++)
		check_mapped(v, s, v->words.word.data[w].place - lo, v->words.word.data[w].target,
			     false);
	for (uint64_t off = 0; s->hdr.sh_size - off >= 8; off += 8) {
		bool distance = is_distance(s, off);
		if (may_lead(s, off) && (fixed || distance) && !is_told(v, lo + off))
			check_mapped(v, s, off,
				     elfrw_get64(s->data + off) + (distance ? lo + off : 0),
				     distance);
	}
}

void icf_v_check_maps(struct icf_v *v)
{
	for (uint32_t i = 1; i < v->claim.in.n_sections; i++)
		if (is_map(&v->claim.in.section[i]))
			check_map(v, &v->claim.in.section[i]);
}

void icf_v_check_listed(struct icf_v *v)
{
	for (uint32_t i = 1; i < v->claim.in.n_sections; i++) {
		const struct elfrw_section *s = &v->claim.in.section[i];
		uint64_t lo = s->hdr.sh_addr, size = is_list(s) ? s->hdr.sh_size : 0;
		for (uint64_t off = -lo & 3; off < size && size - off >= 4; off += 4) {
			uint64_t to = lo + off + (uint64_t)(int32_t)elfrw_get32(s->data + off);
			uint32_t k = to == lo + off ? ICF_V_NONE : icf_v_find(&v->claim, to);
			if (k == ICF_V_NONE)
				continue;
			const struct icf_vunit *u = &v->claim.unit.data[k];
			bool own = !(u->flags & ICF_V_FOLDED) && !u->shared && u->body == u->old;
			char name[200];
			if (own || !may_lead(s, off) || !v->claim.exec.data[u->exec].old_data ||
			    is_known(v, lo + off) || !begins_inside(v, u, to))
				continue;
			icf_vlog_bad(
				&v->log, ICF_VC_WORD,
				"list: %s+0x%llx, of %s (0x%llx): expected code that stays and is not shared",
				s->name, ICF_VX(off), icf_v_where(&v->claim, to, name), ICF_VX(to));
		}
	}
}
