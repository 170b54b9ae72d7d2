/* prog.h: small real programs for tests: assembler text, through `as` and `ld --emit-relocs`,
 * analysed up to the stage that the test is about. */
#ifndef TESTS_UNIT_MAKE_PROG_H
#define TESTS_UNIT_MAKE_PROG_H
#include "tests/unit/make/elf.h"
#include "icf/fold/fold.h"
#include "icf/cli/options.h"
#include "icf/fold/plan.h"
#include "icf/program/program.h"
#include "icf/program/unit.h"

struct tp {
	struct elfrw_image img;
	struct icf_program prog;
	struct icf_options opt;
	struct icf_plan plan;
};

/* Turns assembler TEXT into the open image IMG.  FLAGS go to the linker. */
static inline void tp_link(struct elfrw_image *img, const char *text, const char *flags)
{
	char obj[BE_PATH_SIZE], exe[BE_PATH_SIZE], cmd[3 * BE_PATH_SIZE];
	be_save("", 0, obj);
	be_save("", 0, exe);
	snprintf(cmd, sizeof cmd, "as --64 -o '%s' -", obj);
	FILE *as = popen(cmd, "w");
	assert_non_null(as);
	fputs(text, as);
	assert_int_equal(pclose(as), 0);
	/* -e 0 avoids the warning about the missing _start. Only programs whose entry matters name
	 * it. */
	snprintf(cmd, sizeof cmd, "ld --emit-relocs -e 0 %s -o '%s' '%s'", flags, exe, obj);
	assert_int_equal(system(cmd), 0);
	struct elfrw_err *err = elfrw_image_open(img, exe);
	unlink(obj);
	unlink(exe);
	be_ok(err);
}

/* The stages up to the tables. */
static inline struct elfrw_err *tp_stages(struct tp *t)
{
	struct icf_program *p = &t->prog;
	p->img = &t->img;
	p->arch = t->img.arch;
	ELFRW_TRY(icf_load_symbols(p));
	ELFRW_TRY(dwr_eh_frame_read(&p->cfi, &t->img, t->img.arch->address_size));
	ELFRW_TRY(icf_find_units(p));
	ELFRW_TRY(icf_find_refs(p, 1));
	ELFRW_TRY(icf_find_datarefs(p));
	ELFRW_TRY(icf_infer_refs(p, 1));
	ELFRW_TRY(icf_glue_units(p));
	ELFRW_TRY(icf_resolve(p, 1));
	return icf_find_tables(p, 1);
}

static inline void tp_close(struct tp *t)
{
	icf_plan_deinit(&t->plan);
	icf_program_deinit(&t->prog);
	elfrw_image_close(&t->img);
	memset(t, 0, sizeof *t);
}

/* Analysed, and eligibility decided under MODE. */
static inline void tp_open(struct tp *t, const char *text, const char *flags, enum icf_mode mode)
{
	*t = (struct tp){ .opt = { .mode = mode, .threads = 1 } };
	tp_link(&t->img, text, flags);
	be_ok(tp_stages(t));
	be_ok(icf_find_eligible(&t->prog, &t->opt));
}

/* A program that is refused before eligibility is decided, with PART in the message. */
static inline void tp_refused(const char *text, const char *flags, const char *part)
{
	struct tp t = { .opt = { .threads = 1 } };
	tp_link(&t.img, text, flags);
	struct elfrw_err *err = tp_stages(&t);
	tp_close(&t);
	be_fails(err, part);
}

static inline void tp_plan(struct tp *t)
{
	be_ok(icf_make_plan(&t->prog, &t->opt, &t->plan));
}

/* The address of a symbol of .symtab. */
static inline uint64_t tp_sym(const struct tp *t, const char *name)
{
	const struct elfrw_section *s = &t->img.section[t->img.symtab];
	for (size_t i = 1; i < s->hdr.sh_size / sizeof(Elf64_Sym); i++) {
		Elf64_Sym sym;
		memcpy(&sym, s->data + i * sizeof sym, sizeof sym);
		if (strcmp(elfrw_image_string(&t->img, s->hdr.sh_link, sym.st_name), name) == 0)
			return sym.st_value;
	}
	fail_msg("no symbol %s", name);
	return 0;
}

/* The unit that holds a symbol's address. */
static inline uint32_t tp_unit(const struct tp *t, const char *name)
{
	uint32_t i = icf_unit_at(&t->prog, tp_sym(t, name));
	if (i == ICF_NONE)
		fail_msg("%s is in no unit", name);
	return i;
}

static inline const struct icf_unit *tp_u(const struct tp *t, const char *name)
{
	return &t->prog.unit.data[tp_unit(t, name)];
}

/* The data reference at a symbol's address plus OFF. */
static inline const struct icf_dataref *tp_data(const struct tp *t, const char *name, uint64_t off)
{
	for (size_t i = 0; i < t->prog.dataref.len; i++)
		if (t->prog.dataref.data[i].place == tp_sym(t, name) + off)
			return &t->prog.dataref.data[i];
	return NULL;
}

/* What must hold of every list of units. */
static inline void tp_sound(const struct tp *t)
{
	const struct icf_program *p = &t->prog;
	for (uint32_t i = 0; i < p->unit.len; i++) {
		const struct icf_unit *u = &p->unit.data[i];
		assert_true(u->start < u->end);
		if (i)
			assert_true(p->unit.data[i - 1].end <= u->start);
		assert_true(u->start >= p->exec.data[u->sec].start &&
			    u->end <= p->exec.data[u->sec].end);
		assert_int_equal(icf_unit_at(p, u->start), i);
		assert_int_equal(icf_unit_at(p, u->end - 1), i);
		assert_int_not_equal(icf_unit_at(p, u->end), i);
	}
	/* What lies between is padding. */
	for (size_t e = 0; e < p->exec.len; e++) {
		uint64_t at = p->exec.data[e].start;
		for (uint32_t k = 0; k < p->exec.data[e].n_units; k++) {
			const struct icf_unit *u = &p->unit.data[p->exec.data[e].unit + k];
			if (at < u->start)
				assert_true(icf_is_padding(p, at, u->start));
			at = u->end;
		}
		if (at < p->exec.data[e].end)
			assert_true(icf_is_padding(p, at, p->exec.data[e].end));
	}
	for (size_t i = 1; i < p->dataref.len; i++)
		assert_true(p->dataref.data[i - 1].place <= p->dataref.data[i].place);
}

/* Assembler for functions. */
#define FN(name)  ".globl " name "\n.type " name ",@function\n" name ":\n"
#define END(name) ".size " name ",.-" name "\n"
#define ALIGN     ".p2align 4,0x90\n"
#define TEXT      ".text\n"
/* A function with a body that is long enough to pay for a thunk; N tells bodies apart. */
#define LONG(n)                                                 \
	"movl $" #n ",%eax\nimull $" #n ",%eax,%ecx\nmovl $" #n \
	",%edx\naddl %edx,%ecx\naddl %ecx,%eax\nret\n"
/* Something to relocate, or the program is refused. */
#define ANCHOR                                                       \
	ALIGN FN("anchor") "call anchor_target\nret\n" END("anchor") \
		ALIGN FN("anchor_target") "movl $0x5eed,%eax\nret\n" END("anchor_target")
#endif
