/* state.h: shared by the files that compare code: the parts of the work, and the current unit. */
#ifndef ICF_VERIFY_CODE_STATE_H
#define ICF_VERIFY_CODE_STATE_H
#include "elfrw/relocs.h"
#include "icf/verify/state.h"

/* A register that may hold the high half of an address. */
#define ICF_V_REGS 32
struct icf_vhalf {
	const struct elfrw_form *high; /* NULL: it does not */
	uint64_t insn;                 /* its instruction, from the unit's start */
	uint64_t in, out;              /* what it names in either file */
	uint64_t last;                 /* the last instruction whose low half changed, or 0 */
	bool told;                     /* it was checked by itself */
	bool named;                    /* its relocation tells NAME, what both halves name in IN */
	uint64_t name;
};

/* From FROM on, two instructions compute an address, and a third one, at TO, jumps there. */
struct icf_vwhole {
	uint64_t from, to;
};

struct icf_vcode_part {
	struct icf_vlog log;
	VEC(struct icf_vbase) base;
	struct icf_vnamed named; /* referred to by the current unit */
	VEC(struct icf_vpair) pair;
	VEC(struct icf_vobjref) objref;
	VEC(struct icf_valias) alias;
	VEC(struct icf_vframeref) frameref;
	VEC(struct icf_vcall) call;
	VEC(struct icf_vjump) jump;
	VEC(struct icf_vtaken) taken;
	struct icf_vplaces site;
	VEC(struct icf_vspan) span;
	struct icf_vhalf half[ICF_V_REGS]; /* none, between units */
	size_t unit_span;                  /* the first one of the current unit */
	VEC(uint64_t) inner; /* targets of the current unit's branches in it, from its start */
	VEC(struct icf_vwhole) whole; /* of the current unit */
	VEC(uint64_t) place;          /* opaque.c: computed by the current unit, and in it */
	VEC(uint64_t) outside;        /* places among data of other units that units name */
	struct icf_ventries entered;
};

struct icf_vcode_job {
	struct icf_v *v;
	struct elfrw_relocs *rel; /* by executable section */
	struct icf_vcode_part *part;
	const struct elfrw_section *got; /* of IN, or NULL */
	VEC(uint64_t) objects;           /* code addresses of data symbols, sorted */
	VEC(uint64_t) outside;
};

/* The current unit. */
struct icf_vcode_at {
	const struct icf_vcode_job *job;
	struct icf_vcode_part *part;
	const struct icf_vunit *u;
	const uint8_t *a, *b; /* its bytes in IN, in OUT */
	uint64_t size, moved;
	uint64_t same; /* compared up to here */
	uint32_t index;
	bool alias; /* not its own copy, but the code that replaces it somewhere */
	bool loads; /* the current instruction reads or writes the place that it refers to */
	uint64_t wrong;
	uint64_t called;      /* the target of the last call that was read; 0: not known */
	bool by_pointer;      /* that call goes through a register, or memory it points to */
	bool label;           /* it computes the address of a place behind its start */
	uint64_t sum;         /* what the current instruction computes from two halves, or 0 */
	uint64_t address[32]; /* of functions, by the register that holds it; 0: none */
	uint64_t here;        /* the last instruction called this one, the next; or 0 */
	bool has_address;     /* one of these may be known */
	/* Two instructions from `whole_from` on, up to `whole_to`, have put an address into
	 * `whole_reg`. */
	uint64_t whole_from, whole_to;
	unsigned whole_reg;
	bool own; /* it has the address of a place in itself: an indirect jump may lead anywhere
		     from there */
	bool literals;   /* its data are literals that it alone knows */
	const char *why; /* literal.c: why they are not, */
	uint64_t why_at; /* and where, from the unit's start */
	uint32_t tail;   /* bytes of literals at its end, with the padding before */
};

/* unit.c: compares unit I, or an assumed equal: U with another place. */
void icf_vcode_unit(const struct icf_vcode_job *job, struct icf_vcode_part *part, uint32_t i,
		    struct icf_vunit *u);
/* A difference OFF bytes from the unit's start. */
void icf_vcode_bad(struct icf_vcode_at *at, enum icf_verify_check check, const char *what,
		   uint64_t off, uint64_t want, uint64_t found);
/* The bytes up to TO (an offset) must be the same. */
void icf_vcode_compare_to(struct icf_vcode_at *at, uint64_t to);

/* A reference of IN's code: the field of form `form` at `off`, of the instruction at `insn`, both
 * from the unit's start, leads to `target` in IN and to `found` in OUT. */
struct icf_vref {
	uint64_t insn, off;
	const struct elfrw_form *form;
	bool branch;
	uint64_t target, found;
	bool known;    /* ref.c: the target is in a unit */
	uint64_t want; /* ref.c: where that is in OUT */
};

/* An instruction of IN. */
struct icf_vcode_insn {
	struct elfrw_insn in;
	uint64_t va;
	const uint8_t *code;
};

/* added.c: follows X, POS bytes from the unit's start: are sums with a function's address right? */
void icf_vcode_added(struct icf_vcode_at *at, const struct icf_vcode_insn *x, uint64_t pos);
/* ref.c: does it lead to something acceptable?  _leads: the bytes of its field were compared. */
void icf_vcode_ref(struct icf_vcode_at *at, struct icf_vref r);
void icf_vcode_leads(struct icf_vcode_at *at, struct icf_vref r);
/* Does relocation R, in the instruction INSN, mark a field of it as an address?  *ODD: R stands at
 * no field, so these may not be the instructions. */
bool icf_vcode_is_address(const struct icf_v *v, const struct elfrw_relocs *rel,
			  const Elf64_Rela *r, const struct icf_vcode_insn *insn,
			  const struct elfrw_form **form, bool *odd);

/* Does the indirect jump X, POS bytes from the unit's start, go to the address that the two
 * instructions before it compute?  Asked behind icf_vcode_half(). */
bool icf_vcode_goes_to_whole(struct icf_vcode_at *at, const struct icf_vcode_insn *x, uint64_t pos);

/* literal.c: _find_literals: where data are.  Has unit U any?  Are AT's all literals that it alone
 * knows?  _literals: how many bytes of literals there are from VA on, if that is so.  _data: of
 * data. _check_literals: compares N of them, from POS on; *R is the next relocation.  The size of
 * the load at POS, or 0; what is loaded there from the literal TO, if that is an address, or 0. The
 * rest: nothing else may name literals. */
struct elfrw_err *icf_vcode_find_literals(struct icf_vcode_job *job);
bool icf_vcode_has_data(const struct icf_vcode_job *job, const struct icf_vunit *u);
bool icf_vcode_knows_literals(struct icf_vcode_at *at);
uint64_t icf_vcode_literals(const struct icf_vcode_at *at, uint64_t va);
uint64_t icf_vcode_data(const struct icf_vcode_at *at, uint64_t va);
void icf_vcode_check_literals(struct icf_vcode_at *at, uint64_t pos, uint64_t n, size_t *r);
unsigned icf_vcode_load_size(const struct icf_vcode_at *at, uint64_t pos);
uint64_t icf_vcode_loaded(const struct icf_vcode_at *at, uint64_t pos, uint64_t to);
void icf_vcode_note_outside(struct icf_vcode_at *at, uint64_t target);
void icf_vcode_check_outside(struct icf_vcode_job *job, struct icf_vcode_part *part);

/* removed.c: reads a unit that OUT has not got. */
void icf_vcode_removed(struct icf_vcode_at *at);
/* ref.c: notes a place in data that may be where words or a table begin. */
void icf_vcode_note_base(struct icf_vcode_at *at, uint64_t target);

/* call.c: records data for the check of the call tables.  END: the address behind the
 * instruction. */
void icf_vcode_note_call(struct icf_vcode_at *at, const struct elfrw_insn *in, uint64_t end);
void icf_vcode_note_bound_call(struct icf_vcode_at *at, uint64_t slot, uint64_t end);
/* The same for code that takes the address TARGET of code, or reads data at PLACE. */
void icf_vcode_note_taken(struct icf_vcode_at *at, uint64_t target);
void icf_vcode_note_loaded(struct icf_vcode_at *at, uint64_t place);

/* half.c: for architectures that have halves of addresses; for each instruction of the unit in
 * turn, for branches into the unit itself, and at its end. */
void icf_vcode_half(struct icf_vcode_at *at, const struct icf_vcode_insn *x, uint64_t pos);
void icf_vcode_note_entered(struct icf_vcode_at *at, uint64_t target); /* by a reference */
void icf_vcode_note_inner(struct icf_vcode_at *at, uint64_t to);
void icf_vcode_end_halves(struct icf_vcode_at *at);
/* Has OUT, in the place of X and of the no-op before it, an address in two halves?  Checks it. */
bool icf_vcode_widened(struct icf_vcode_at *at, const struct icf_vcode_insn *x, uint64_t pos);

/* padding.c: _find: before all code is compared.  Something leads into padding, at VA, which is in
 * no unit: is that place what it was, with all that control gets to from there, or (BRANCH is
 * false: its address is taken) with what ends there? */
void icf_vcode_find_padding(struct icf_vclaim *c);
bool icf_vcode_padding_stays(const struct icf_vclaim *c, uint64_t va, bool branch);
/* The same for addresses from FROM to TO, with all code there. */
bool icf_vcode_range_stays(const struct icf_vclaim *c, uint64_t from, uint64_t to);
/* Does control that gets to the end of unit K run into the next one of its section: at once,
 * through no-ops, or by a jump over them, as assemblers fill long gaps? */
bool icf_vcode_runs_on(const struct icf_vclaim *c, uint32_t k);

/* opaque.c: may the unit be data?  Then it must stay, with all that it could refer to. */
bool icf_vcode_has_object(const struct icf_vcode_job *job, const struct icf_vunit *u);
bool icf_vcode_is_strange(const struct icf_vcode_at *at);
void icf_vcode_opaque(struct icf_vcode_at *at);
/* What is POS bytes from the unit's start may refer to TO: it must not be elsewhere in OUT. */
void icf_vcode_still(struct icf_vcode_at *at, uint64_t pos, uint64_t to);
/* word.c: checks the tables of distances that the unit, which is not understood, may use. */
void icf_vcode_tables(struct icf_vcode_at *at);
#endif
