/* unloaded.c: see unloaded.h.
 *
 * Kept relocations mark addresses.  Without relocations the format must be known.  A section of
 * unknown format is examined word by word: a word, at any offset, with the address of a unit may be
 * an address.  A payload that a program reads from its own file must not be dropped, so nothing
 * moves then. */
#include "icf/fold/unloaded.h"
#include "elfrw/base/rbuf.h"
#include "icf/infer/parts.h"
#include "icf/fold/probe.h"
#include "icf/fold/pseudo.h"
#include "icf/refs/ref.h"
#include <string.h>

/* LLVM's numbers (llvm/BinaryFormat/ELF.h). */
#define LLVM_ADDRSIG            0x6fff4c03
#define LLVM_BB_ADDR_MAP_0      0x6fff4c08
#define LLVM_CALL_GRAPH_PROFILE 0x6fff4c09
#define LLVM_BB_ADDR_MAP        0x6fff4c0a

static bool begins(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

static bool skip_ulebs(struct elfrw_rbuf *r, uint64_t n, uint64_t each)
{
	if (n > elfrw_rbuf_left(r))
		return false;
	for (n *= each; n && elfrw_rbuf_ok(r); n--)
		elfrw_rbuf_uleb(r);
	return elfrw_rbuf_ok(r);
}

/* llvm.org/docs/Extensions.html, "SHT_LLVM_BB_ADDR_MAP", versions 0 to 2. */
static bool blocks(uint32_t type, struct elfrw_rbuf *r, uint64_t *field, uint32_t *n)
{
	uint64_t version = 0, feature = 0, ranges = 1, total = 0;
	if (type == LLVM_BB_ADDR_MAP) {
		version = elfrw_rbuf_u8(r);
		feature = elfrw_rbuf_u8(r);
		if (version > 2 || (feature & ~UINT64_C(15)))
			return false;
		if (feature & 8)
			ranges = elfrw_rbuf_uleb(r);
	}
	if (!ranges || ranges > ICF_UNLOADED_FIELDS)
		return false;
	for (*n = 0; *n < ranges; ++*n) {
		field[*n] = elfrw_rbuf_off(r);
		elfrw_rbuf_skip(r, 8);
		uint64_t count = elfrw_rbuf_uleb(r);
		if (!skip_ulebs(r, count, version >= 2 ? 4 : 3))
			return false;
		total += count;
	}
	if (feature & 1)
		elfrw_rbuf_uleb(r);
	for (; (feature & 6) && total && elfrw_rbuf_ok(r); total--) {
		if (feature & 2)
			elfrw_rbuf_uleb(r);
		if ((feature & 4) && !skip_ulebs(r, elfrw_rbuf_uleb(r), 2))
			return false;
	}
	return elfrw_rbuf_ok(r);
}

bool icf_unloaded_record(const struct elfrw_section *s, struct elfrw_rbuf *r,
			 uint64_t field[ICF_UNLOADED_FIELDS], uint32_t *n)
{
	if (strcmp(s->name, ".stack_sizes") != 0)
		return blocks(s->hdr.sh_type, r, field, n);
	field[0] = elfrw_rbuf_off(r);
	*n = 1;
	elfrw_rbuf_skip(r, 8);
	elfrw_rbuf_uleb(r);
	return elfrw_rbuf_ok(r);
}

static bool parses(const struct elfrw_section *s)
{
	struct elfrw_rbuf r = elfrw_rbuf(s->data, s->hdr.sh_size);
	uint64_t field[ICF_UNLOADED_FIELDS];
	uint32_t n;
	while (elfrw_rbuf_left(&r))
		if (!icf_unloaded_record(s, &r, field, &n))
			return false;
	return true;
}

/* Text, names, other files' code, and sections that are rewritten elsewhere. */
static bool is_plain(const struct elfrw_section *s)
{
	static const char *const name[] = { ".comment",
					    ".GCC.command.line",
					    ".gnu_debuglink",
					    ".gnu_debugaltlink",
					    ".gnu_debugdata",
					    ".note.stapsdt",
					    ".note.gnu.gold-version",
					    ".note.GNU-stack",
					    ".deplibs",
					    ".llvmbc",
					    ".llvmcmd",
					    ".rustc",
					    ".BTF",
					    ".annobin.notes",
					    ".pseudo_probe_desc",
					    ".gdb_index",
					    ".ctf" };
	for (size_t i = 0; i < sizeof name / sizeof *name; i++)
		if (strcmp(s->name, name[i]) == 0)
			return true;
	switch (s->hdr.sh_type) {
	case SHT_SYMTAB:
	case SHT_STRTAB:
	case SHT_RELA:
	case SHT_REL:
	case SHT_SYMTAB_SHNDX:
	case SHT_NOBITS:
	case SHT_NULL: return true;
	}
	return (s->hdr.sh_type == SHT_NOTE && icf_has_probes(s)) || begins(s->name, ".debug_") ||
	       begins(s->name, ".zdebug_") || begins(s->name, ".gnu.debuglto_") ||
	       begins(s->name, ".gnu.lto_") || begins(s->name, ".gnu.warning");
}

enum icf_unloaded icf_unloaded_kind(const struct elfrw_image *img, uint32_t shndx)
{
	const struct elfrw_section *s = &img->section[shndx];
	uint32_t type = s->hdr.sh_type;
	if ((s->hdr.sh_flags & SHF_ALLOC) || !s->data)
		return ICF_UNLOADED_PLAIN;
	bool stacks = strcmp(s->name, ".stack_sizes") == 0;
	if (stacks || type == LLVM_BB_ADDR_MAP || type == LLVM_BB_ADDR_MAP_0) {
		if ((s->hdr.sh_flags & SHF_COMPRESSED) || !parses(s))
			return ICF_UNLOADED_DROP;
		return stacks ? ICF_UNLOADED_STACKS : ICF_UNLOADED_BLOCKS;
	}
	if (strcmp(s->name, ".pseudo_probe") == 0)
		return (s->hdr.sh_flags & SHF_COMPRESSED) || !img->symtab ||
				       elfrw_image_relocs_of(img, shndx, 0) || !icf_pseudo_parses(s)
			       ? ICF_UNLOADED_DROP
			       : ICF_UNLOADED_PSEUDO;
	/* Indices of symbols, 4-byte fields: relocations do not cover them all. */
	if (type == LLVM_ADDRSIG || type == LLVM_CALL_GRAPH_PROFILE || begins(s->name, ".stab"))
		return ICF_UNLOADED_DROP;
	if (is_plain(s) || elfrw_image_relocs_of(img, shndx, 0))
		return ICF_UNLOADED_PLAIN;
	return begins(s->name, ".gnu.build.attributes") ? ICF_UNLOADED_DROP : ICF_UNLOADED_UNKNOWN;
}

void icf_find_unloaded(struct icf_program *prog)
{
	const struct elfrw_image *img = prog->img;
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const struct elfrw_section *s = &img->section[i];
		if (icf_unloaded_kind(img, i) != ICF_UNLOADED_UNKNOWN)
			continue;
		for (uint64_t off = 0; off + 8 <= s->hdr.sh_size; off++) {
			uint64_t v = elfrw_get64(s->data + off);
			uint32_t u = v >> 48 ? ICF_NONE : icf_unit_at(prog, v);
			if (u == ICF_NONE || prog->unit.data[u].start != v)
				continue;
			icf_infer_loose(
				prog, v,
				"a section of unknown meaning that is not loaded holds an address of code");
			return;
		}
	}
}
