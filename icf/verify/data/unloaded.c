/* unloaded.c: records about functions in sections that are not loaded (.stack_sizes,
 * .llvm_bb_addr_map), and words of sections of unknown meaning that are code addresses. */
#include "icf/verify/state.h"
#include <string.h>

#define V0 0x6fff4c08 /* SHT_LLVM_BB_ADDR_MAP, without a version, and with one */
#define V1 0x6fff4c0a

bool icf_v_is_records(const struct elfrw_section *s)
{
	return !(s->hdr.sh_flags & (SHF_ALLOC | SHF_COMPRESSED)) &&
	       (s->hdr.sh_type == V0 || s->hdr.sh_type == V1 ||
		strcmp(s->name, ".stack_sizes") == 0);
}

/* The state behind an address; *RANGES and *PGO: the rest of its record, in BLOCKS blocks. */
struct state {
	uint64_t ranges, blocks;
	unsigned version, feature;
};

static void numbers(struct elfrw_rbuf *r, uint64_t n)
{
	while (n-- && elfrw_rbuf_ok(r))
		elfrw_rbuf_uleb(r);
}

/* The head of a record: up to its first address. */
static void head(const struct elfrw_section *s, struct elfrw_rbuf *r, struct state *st)
{
	*st = (struct state){ .ranges = 1 };
	if (s->hdr.sh_type != V1)
		return;
	st->version = elfrw_rbuf_u8(r);
	st->feature = elfrw_rbuf_u8(r);
	if (st->feature & 8)
		st->ranges = elfrw_rbuf_uleb(r);
}

/* Skips the bytes behind an address, up to the next address or the end of the record. */
static void rest(const struct elfrw_section *s, struct elfrw_rbuf *r, struct state *st)
{
	bool map = s->hdr.sh_type == V0 || s->hdr.sh_type == V1;
	uint64_t n = elfrw_rbuf_uleb(r);
	for (uint64_t k = 0; map && k < n && elfrw_rbuf_ok(r); k++)
		numbers(r, st->version > 1 ? 4 : 3);
	st->blocks += n;
	if (--st->ranges || !map)
		return;
	numbers(r, st->feature & 1);
	for (uint64_t k = 0; (st->feature & 6) && k < st->blocks && elfrw_rbuf_ok(r); k++) {
		numbers(r, (st->feature & 2) != 0);
		if (st->feature & 4)
			for (uint64_t each = elfrw_rbuf_uleb(r); each && elfrw_rbuf_ok(r); each--)
				numbers(r, 2);
	}
}

/* Every record of IN must be in OUT, in the same order and with the same bytes except for its
 * addresses.  Records of folded functions must not. */
void icf_v_check_records(const struct icf_vclaim *c, struct icf_vlog *log,
			 const struct elfrw_section *a, const struct elfrw_section *b)
{
	struct elfrw_rbuf x = elfrw_rbuf(a->data, a->hdr.sh_size),
			  y = elfrw_rbuf(b->data, b->data ? b->hdr.sh_size : 0);
	while (elfrw_rbuf_left(&x)) {
		struct state st;
		uint64_t from = elfrw_rbuf_off(&x);
		head(a, &x, &st);
		uint64_t at = elfrw_rbuf_off(&x);
		uint64_t first = elfrw_rbuf_u64(&x);
		uint32_t u = icf_v_find(c, first);
		bool gone = u != ICF_V_NONE && c->unit.data[u].old == first &&
			    (c->unit.data[u].flags & ICF_V_FOLDED),
		     same = true;
		log->checked[ICF_VC_NOTE]++;
		for (bool again = true; again && same;) {
			uint64_t old = elfrw_get64(a->data + (elfrw_rbuf_ok(&x) ? at : 0)), new = 0,
				 want = old;
			const uint8_t *p = gone ? NULL : elfrw_rbuf_take(&y, at - from);
			same = gone || (p && memcmp(p, a->data + from, at - from) == 0);
			if (!gone)
				new = elfrw_rbuf_u64(&y);
			if (icf_v_in_exec(c, old))
				icf_v_code(c, old, &want);
			from = at + 8;
			rest(a, &x, &st);
			again = st.ranges && elfrw_rbuf_ok(&x);
			at = elfrw_rbuf_off(&x);
			same = same && (gone || new == want);
			if (again)
				elfrw_rbuf_u64(&x);
		}
		const uint8_t *p =
			gone || !same || at < from ? NULL : elfrw_rbuf_take(&y, at - from);
		same = same && elfrw_rbuf_ok(&x) &&
		       (gone || (p && memcmp(p, a->data + from, at - from) == 0));
		if (!same) {
			icf_vlog_bad(
				log, ICF_VC_NOTE,
				"record: %s, of the function at 0x%llx: expected the same of its new place, found another",
				a->name, ICF_VX(first));
			return;
		}
	}
	if (elfrw_rbuf_left(&y))
		icf_vlog_bad(
			log, ICF_VC_NOTE,
			"record: %s: expected none behind the last of the input, found %llu bytes",
			a->name, ICF_VX(elfrw_rbuf_left(&y)));
}

static bool is_text(const char *name)
{
	static const char *const known[] = { ".comment",       ".GCC.command.line",
					     ".gnu_debuglink", ".gnu_debugaltlink",
					     ".deplibs",       ".llvmbc",
					     ".llvmcmd",       ".rustc",
					     ".BTF",           ".ctf",
					     ".annobin.notes", ".pseudo_probe_desc",
					     ".gdb_index",     ".note.gnu.gold-version",
					     ".note.stapsdt",  ".note.GNU-stack",
					     ".gnu_debugdata" };
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(name, known[i]) == 0)
			return true;
	return strncmp(name, ".gnu.warning", 12) == 0 || strncmp(name, ".gnu.lto_", 9) == 0 ||
	       strncmp(name, ".gnu.debuglto_", 14) == 0;
}

/* The bytes A, of unknown meaning, stay as they are.  None of them may be the address of code that
 * has moved. */
void icf_v_check_stale(const struct icf_vclaim *c, struct icf_vlog *log,
		       const struct elfrw_section *a)
{
	uint32_t type = a->hdr.sh_type;
	if (!a->data || is_text(a->name) ||
	    (type != SHT_PROGBITS && type != SHT_NOTE && type < SHT_LOOS))
		return;
	for (uint64_t off = 0; off + 8 <= a->hdr.sh_size; off++) {
		uint64_t value = elfrw_get64(a->data + off), want;
		uint32_t u = value >> 48 ? ICF_V_NONE : icf_v_find(c, value);
		if (u == ICF_V_NONE || c->unit.data[u].old != value)
			continue;
		log->checked[ICF_VC_NOTE]++;
		icf_v_pointer(c, value, &want);
		if (want == value)
			continue;
		icf_vlog_bad(
			log, ICF_VC_NOTE,
			"word: %s+0x%llx (0x%llx): expected 0x%llx, or no such section, found what it was",
			a->name, ICF_VX(off), ICF_VX(value), ICF_VX(want));
		return;
	}
}
