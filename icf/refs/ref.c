/* ref.c: the references in code.
 *
 * The decoded instruction is the truth: after a linker's relaxations the kept relocations have
 * stale types and places.  Every PC-relative field is seen by decoding; a relocation is needed only
 * to tell that an immediate or an absolute displacement is an address.  One pass over all code, in
 * chunks of units that threads take in turn. */
#include "icf/refs/ref.h"
#include "elfrw/base/parallel.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "icf/program/unit.h"
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (256 * 1024)

static int rela_order(const void *a, const void *b)
{
	const Elf64_Rela *x = a, *y = b;
	return x->r_offset < y->r_offset ? -1 : x->r_offset > y->r_offset;
}

struct elfrw_err *icf_code_relocs_open(struct icf_code_relocs *ret, const struct icf_program *prog,
				       const struct icf_exec *e)
{
	const struct elfrw_image *img = prog->img;
	*ret = (struct icf_code_relocs){ 0 };
	for (uint32_t i = 0; (i = elfrw_image_relocs_of(img, e->shndx, i));) {
		const struct elfrw_section *s = &img->section[i];
		if (ret->rela)
			return elfrw_error_at(s->name, 0,
					      "a second relocation section for one code section");
		if ((uintptr_t)s->data % _Alignof(Elf64_Rela) == 0)
			ret->rela = (const Elf64_Rela *)s->data;
		ret->n = s->hdr.sh_size / sizeof(Elf64_Rela);
		ret->symtab = s->hdr.sh_link;
		ret->name = s->name;
		bool sorted = ret->rela != NULL;
		for (size_t k = 1; k < ret->n && sorted; k++)
			sorted = ret->rela[k - 1].r_offset <= ret->rela[k].r_offset;
		if (sorted)
			continue;
		ret->owned = malloc(s->hdr.sh_size);
		if (!ret->owned)
			return &elfrw_err_nomem;
		memcpy(ret->owned, s->data, s->hdr.sh_size);
		qsort(ret->owned, ret->n, sizeof *ret->owned, rela_order);
		ret->rela = ret->owned;
	}
	return NULL;
}

void icf_code_relocs_close(struct icf_code_relocs *rel)
{
	free(rel->owned);
	*rel = (struct icf_code_relocs){ 0 };
}

size_t icf_code_relocs_from(const struct icf_code_relocs *rel, uint64_t va)
{
	return LOWER_BOUND(0, rel->n, mid, rel->rela[mid].r_offset < va);
}

bool icf_reloc_symbol(const struct elfrw_image *img, uint32_t symtab, const Elf64_Rela *r,
		      Elf64_Sym *ret)
{
	memset(ret, 0, sizeof *ret);
	uint64_t i = ELF64_R_SYM(r->r_info);
	if (i == 0)
		return true;
	const struct elfrw_section *s = &img->section[symtab];
	if ((s->hdr.sh_type != SHT_SYMTAB && s->hdr.sh_type != SHT_DYNSYM) || !s->data ||
	    i >= s->hdr.sh_size / sizeof *ret)
		return false;
	memcpy(ret, s->data + i * sizeof *ret, sizeof *ret);
	return true;
}

static bool symbol_in_code(const struct icf_program *prog, const Elf64_Sym *sym)
{
	return sym->st_shndx != SHN_UNDEF && sym->st_shndx < prog->img->n_sections &&
	       (prog->img->section[sym->st_shndx].hdr.sh_flags & SHF_EXECINSTR);
}

/* What a relocation inside an instruction means. */
enum verdict { IGNORE, ADDRESS, ODD };

static struct elfrw_err *judge(const struct icf_program *prog, const struct icf_code_relocs *rel,
			       const Elf64_Rela *r, const struct elfrw_insn *in, uint64_t insn_va,
			       const uint8_t *code, enum verdict *ret, struct icf_ref *ref)
{
	unsigned at = (unsigned)(r->r_offset - insn_va);
	struct elfrw_reloc_desc d = prog->arch->reloc((uint32_t)ELF64_R_TYPE(r->r_info));
	*ret = IGNORE;
	if (!d.name)
		return elfrw_error_at(
			rel->name, (uint64_t)((const char *)r - (const char *)rel->rela),
			"unknown relocation type %u", (unsigned)ELF64_R_TYPE(r->r_info));
	switch (d.kind) {
	case ELFRW_RELOC_NONE:
	case ELFRW_RELOC_TLS: return NULL;
	case ELFRW_RELOC_GOTREL:
	case ELFRW_RELOC_HARD: {
		/* The distance of data from the GOT, neither of which moves. */
		Elf64_Sym data;
		if (d.kind == ELFRW_RELOC_GOTREL &&
		    icf_reloc_symbol(prog->img, rel->symtab, r, &data) &&
		    data.st_shndx != SHN_UNDEF && data.st_shndx < prog->img->n_sections &&
		    !symbol_in_code(prog, &data))
			return NULL;
		return elfrw_error_at(
			rel->name, (uint64_t)((const char *)r - (const char *)rel->rela),
			"%s in code is not supported (large or medium code model?)", d.name);
	}
	case ELFRW_RELOC_ABS:
	case ELFRW_RELOC_PCREL:
	case ELFRW_RELOC_GOTPCREL: break;
	default:
		*ret = ODD; /* a dynamic relocation in code */
		return NULL;
	}
	Elf64_Sym sym;
	if (!icf_reloc_symbol(prog->img, rel->symtab, r, &sym))
		return elfrw_error_at(rel->name,
				      (uint64_t)((const char *)r - (const char *)rel->rela),
				      "relocation against a symbol that does not exist");
	if (in->pcrel_size && at == in->pcrel_off) {
		*ret = d.kind == ELFRW_RELOC_ABS ? ODD : IGNORE;
		return NULL;
	}
	/* A relaxed TLS sequence keeps its call's relocation, now anywhere in other
	 * instructions. */
	const char *name =
		sym.st_name
			? elfrw_image_string(prog->img, prog->img->section[rel->symtab].hdr.sh_link,
					     sym.st_name)
			: NULL;
	if (d.kind != ELFRW_RELOC_ABS && name && strncmp(name, "__tls_get_addr", 14) == 0)
		return NULL;
	bool disp = in->disp_size && at == in->disp_off, imm = in->imm_size && at == in->imm_off;
	if (!disp && !imm) {
		/* A relaxed GOT load may be one byte off.  Anything else means that these bytes are
		 * not the instructions we see. */
		if (d.kind != ELFRW_RELOC_GOTPCREL)
			*ret = ODD;
		return NULL;
	}
	if (d.kind == ELFRW_RELOC_PCREL) {
		*ret = ODD;
		return NULL;
	}
	unsigned size = disp ? in->disp_size : in->imm_size;
	if (d.kind == ELFRW_RELOC_ABS && d.size < size)
		size = d.size;
	if (d.kind == ELFRW_RELOC_ABS && d.size > size) {
		*ret = ODD;
		return NULL;
	}
	uint64_t value = elfrw_get_le(code + at, size);
	bool sign = size < 8 && (d.kind == ELFRW_RELOC_GOTPCREL || d.sign || disp);
	if (sign && size == 4)
		value = (uint64_t)(int64_t)(int32_t)value;
	if (size < 4) {
		*ret = symbol_in_code(prog, &sym) ? ODD : IGNORE;
		return NULL;
	}
	/* Data does not move, but a field may name it with a far addend; code named from afar could
	 * move away. */
	if (!icf_in_exec(prog, value) && !icf_ends_exec(prog, value) && d.kind == ELFRW_RELOC_ABS &&
	    symbol_in_code(prog, &sym) && sym.st_value != 0) {
		*ret = ODD;
		return NULL;
	}
	/* An immediate under a GOT relocation: the address, or (relaxed TLS) a constant. */
	if (d.kind == ELFRW_RELOC_GOTPCREL && value != sym.st_value)
		return NULL;
	*ref = (struct icf_ref){ .target = value,
				 .unit = ICF_NONE,
				 .table = ICF_NONE,
				 .size = (uint8_t)size,
				 .kind = ICF_REF_ABS,
				 .flags = (sign ? ICF_REF_SIGN : 0) |
					  ((in->flags & ELFRW_INSN_LEA) || imm ? ICF_REF_LEA : 0) };
	*ret = ADDRESS;
	return NULL;
}

static bool is_branch(const struct elfrw_insn *in)
{
	return in->kind == ELFRW_INSN_CALL || in->kind == ELFRW_INSN_JMP ||
	       in->kind == ELFRW_INSN_JCC;
}

void icf_make_opaque(struct icf_unit *u)
{
	u->kind = ICF_UNIT_OPAQUE;
	u->reason = ICF_NOT_UNDERSTOOD;
	u->n_ref = 0;
}

struct elfrw_err *icf_decode_unit(struct icf_program *prog, uint32_t i, uint32_t chunk,
				  const struct icf_code_relocs *rel)
{
	struct icf_unit *u = &prog->unit.data[i];
	struct icf_chunk *c = &prog->chunk[chunk];
	const uint8_t *code = icf_unit_bytes(prog, u);
	uint64_t size = u->end - u->start;
	size_t r = icf_code_relocs_from(rel, u->start), r_end = icf_code_relocs_from(rel, u->end);
	unsigned (*decode)(const uint8_t *, size_t, uint64_t, struct elfrw_insn *) =
		prog->arch->decode;
	struct elfrw_insn in;
	uint8_t last = ELFRW_INSN_NOP;
	u->chunk = chunk;
	u->ref = (uint32_t)c->ref.len;
	u->n_ref = 0;
	u->flags &= (uint16_t) ~(ICF_UNIT_FALLS | ICF_UNIT_ENDBR | ICF_UNIT_DATA_READ);
	if (u->kind == ICF_UNIT_OPAQUE)
		return NULL;
	if (size > UINT32_MAX) {
		icf_make_opaque(u);
		return NULL;
	}
	/* The decoder is fastest when it may look beyond an instruction, so it sees all of the
	 * section. */
	uint64_t avail = prog->exec.data[u->sec].end - u->start;
	for (uint64_t pos = 0; pos < size; pos += in.len) {
		if (!decode(code + pos, avail - pos, u->start + pos, &in) || in.len > size - pos ||
		    (in.flags & ELFRW_INSN_LONG_CALL)) {
			icf_make_opaque(u);
			c->ref.len = u->ref;
			return NULL;
		}
		if (pos == 0 && (in.flags & ELFRW_INSN_ENDBR))
			u->flags |= ICF_UNIT_ENDBR;
		if (in.pcrel_size) {
			bool branch = is_branch(&in);
			bool inside = in.target - u->start < size;
			if (inside && !branch)
				u->flags |= ICF_UNIT_DATA_READ;
			if (!inside || (!branch && in.target == u->start)) {
				struct icf_ref *ref = VEC_PUSH(&c->ref);
				if (!ref)
					return &elfrw_err_nomem;
				*ref = (struct icf_ref){
					.target = in.target,
					.off = (uint32_t)pos + in.pcrel_off,
					.unit = ICF_NONE,
					.table = ICF_NONE,
					.size = in.pcrel_size,
					.kind = branch ? ICF_REF_BRANCH : ICF_REF_PCREL,
					.flags = (in.kind == ELFRW_INSN_CALL ? ICF_REF_CALL : 0) |
						 ((in.flags & ELFRW_INSN_LEA) ? ICF_REF_LEA : 0)
				};
			}
		}
		for (uint64_t end = u->start + pos + in.len;
		     r < r_end && rel->rela[r].r_offset < end; r++) {
			struct icf_ref ref;
			enum verdict verdict;
			ELFRW_TRY(judge(prog, rel, &rel->rela[r], &in, u->start + pos, code + pos,
					&verdict, &ref));
			if (verdict == ODD) {
				icf_make_opaque(u);
				c->ref.len = u->ref;
				return NULL;
			}
			if (verdict == ADDRESS) {
				struct icf_ref *slot = VEC_PUSH(&c->ref);
				if (!slot)
					return &elfrw_err_nomem;
				ref.off = (uint32_t)(rel->rela[r].r_offset - u->start);
				*slot = ref;
			}
		}
		if (in.kind != ELFRW_INSN_NOP)
			last = in.kind;
	}
	u->n_ref = (uint32_t)c->ref.len - u->ref;
	if ((last == ELFRW_INSN_OTHER || last == ELFRW_INSN_JCC || last == ELFRW_INSN_NOP) &&
	    !prog->exec.data[u->sec].linkage)
		u->flags |= ICF_UNIT_FALLS;
	return NULL;
}

struct job {
	struct icf_program *prog;
	struct icf_code_relocs *rel; /* by exec section */
	uint32_t *first;             /* unit that each chunk begins with; one more at the end */
};

static struct elfrw_err *decode_chunk(void *arg, size_t c)
{
	struct job *job = arg;
	for (uint32_t i = job->first[c]; i < job->first[c + 1]; i++)
		ELFRW_TRY(icf_decode_unit(job->prog, i, (uint32_t)c,
					  &job->rel[job->prog->unit.data[i].sec]));
	return NULL;
}

static struct elfrw_err *make_chunks(struct icf_program *prog, struct job *job)
{
	size_t max = 2;
	for (size_t i = 0; i < prog->exec.len; i++)
		max += (prog->exec.data[i].end - prog->exec.data[i].start) / CHUNK_BYTES + 1;
	job->first = malloc((max + 1) * sizeof *job->first);
	prog->chunk = calloc(max + 1, sizeof *prog->chunk);
	if (!job->first || !prog->chunk)
		return &elfrw_err_nomem;
	uint64_t bytes = CHUNK_BYTES;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		if (bytes >= CHUNK_BYTES) {
			job->first[prog->n_chunks++] = i;
			bytes = 0;
		}
		bytes += prog->unit.data[i].end - prog->unit.data[i].start;
	}
	job->first[prog->n_chunks] = (uint32_t)prog->unit.len;
	return NULL;
}

/* How many zeros stand behind the last jump or return of U, which holds nothing else there? */
static uint64_t zeros_behind(const struct icf_program *prog, const struct icf_unit *u)
{
	const uint8_t *p = icf_unit_bytes(prog, u);
	uint64_t size = u->end - u->start, end = size, last = 0;
	while (end > 0 && p[end - 1] == 0)
		end--;
	struct elfrw_insn in;
	for (uint64_t pos = 0; pos < end; pos += in.len) {
		if (!prog->arch->decode(p + pos, size - pos, u->start + pos, &in))
			return 0;
		bool stops = in.kind == ELFRW_INSN_JMP || in.kind == ELFRW_INSN_RET ||
			     in.kind == ELFRW_INSN_JMP_IND || in.kind == ELFRW_INSN_TRAP;
		last = stops ? pos + in.len : 0;
	}
	return last && last < size ? size - last : 0;
}

/* Code without a symbol or an FDE, such as crtstuff in a stripped file, may be code like any other:
 * it is looked at later (infer/code.c). It begins behind the padding, and ends before the zeros
 * that mold fills up with. */
static struct elfrw_err *look_into_gaps(struct icf_program *prog)
{
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		struct icf_unit *u = &prog->unit.data[i];
		if (u->kind != ICF_UNIT_OPAQUE || u->n_sym || u->n_fde)
			continue;
		u->kind = ICF_UNIT_RIGID;
		u->reason = ICF_NOT_A_FUNCTION;
		const uint8_t *p = icf_unit_bytes(prog, u);
		uint64_t size = u->end - u->start, n = 0;
		for (struct elfrw_insn in; n < size; n += in.len)
			if (p[n] == 0 || p[n] == prog->arch->fill)
				in.len = 1;
			else if (!prog->arch->decode(p + n, size - n, u->start + n, &in) ||
				 in.kind != ELFRW_INSN_NOP)
				break;
		u->start += n < size ? n : 0;
		u->end -= zeros_behind(prog, u);
	}
	return icf_index_units(prog);
}

struct elfrw_err *icf_find_refs(struct icf_program *prog, unsigned threads)
{
	struct job job = { .prog = prog };
	struct elfrw_err *err = NULL;
	bool any = false;
	job.rel = calloc(prog->exec.len, sizeof *job.rel);
	if (!job.rel)
		return &elfrw_err_nomem;
	for (size_t i = 0; i < prog->exec.len && !err; i++) {
		err = icf_code_relocs_open(&job.rel[i], prog, &prog->exec.data[i]);
		any |= job.rel[i].n > 0;
	}
	prog->inferred = !any;
	if (!err)
		err = look_into_gaps(prog);
	if (!err)
		err = make_chunks(prog, &job);
	if (!err)
		err = elfrw_parallel(threads, prog->n_chunks, decode_chunk, &job);
	/* One chunk more for what is decoded again after gluing. */
	if (prog->chunk)
		prog->n_chunks++;
	for (size_t i = 0; i < prog->exec.len; i++)
		icf_code_relocs_close(&job.rel[i]);
	free(job.rel);
	free(job.first);
	return err;
}
