/* expr.c: operand lengths, nesting, errors and the mapping of DWARF expressions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "dwarf/expr.h"
#include "elfrw/addrmap.h"
#include "elfrw/base/rbuf.h"
#include <dwarf.h>
#include <string.h>

#define P8 ((struct dwr_form_params){ 5, 8, 4 })
#define BYTES(...)                                                \
	(const uint8_t[]){ __VA_ARGS__ }, sizeof(const uint8_t[]) \
	{                                                         \
		__VA_ARGS__                                       \
	}

/* [0x1000,0x1040) moved to 0x2000; [0x1040,0x1080) folded into it, with a thunk at 0x3000. */
static struct elfrw_addrmap make_map(void)
{
	static const struct elfrw_addrmap_unit units[] = {
		{ .old = 0x1000,
		  .old_end = 0x1040,
		  .body = 0x2000,
		  .entry = 0x2000,
		  .flags = ELFRW_UNIT_KEPT },
		{ .old = 0x1040,
		  .old_end = 0x1080,
		  .body = 0x2000,
		  .entry = 0x3000,
		  .thunk_size = 5,
		  .flags = ELFRW_UNIT_FOLDED | ELFRW_UNIT_THUNK },
	};
	struct elfrw_addrmap map = { .n_units = 2, .n_sections = 1 };
	map.unit = malloc(sizeof units);
	memcpy(map.unit, units, sizeof units);
	map.section = malloc(sizeof *map.section);
	*map.section = (struct elfrw_addrmap_section){ 0x1000, 0x1080, 0x2000, 0x3010, 1 };
	assert_null(elfrw_addrmap_finish(&map));
	return map;
}

static void fails(struct elfrw_err *err)
{
	assert_non_null(err);
	elfrw_err_free(err);
}

/* Walks and gives the number of operators, or -1 for an error. */
static int walk(const uint8_t *data, size_t size, struct dwr_form_params params,
		struct dwr_op *last)
{
	struct dwr_expr_walk w = dwr_expr_walk(data, size, params, ".test", 0);
	int n = 0;
	for (;; n++) {
		struct dwr_op op;
		bool more;
		struct elfrw_err *err = dwr_expr_next(&w, &op, &more);
		if (err) {
			elfrw_err_free(err);
			return -1;
		}
		if (!more)
			return n;
		*last = op;
	}
}

static void test_operands(void **state)
{
	(void)state;
	struct dwr_op op;
	struct dwr_form_params p4 = { 4, 4, 4 }, p64 = { 5, 8, 8 }, p2 = { 2, 8, 4 };
	assert_int_equal(walk(BYTES(DW_OP_addr, 1, 2, 3, 4, 5, 6, 7, 8), P8, &op), 1);
	assert_true(op.operand[0] == 0x0807060504030201 && op.end == 9);
	assert_int_equal(walk(BYTES(DW_OP_addr, 1, 2, 3, 4, DW_OP_deref), p4, &op), 2);
	assert_int_equal(walk(BYTES(DW_OP_const1s, 0xff), P8, &op), 1);
	assert_true((int64_t)op.operand[0] == -1);
	assert_int_equal(walk(BYTES(DW_OP_const4s, 0xfe, 0xff, 0xff, 0xff), P8, &op), 1);
	assert_true((int64_t)op.operand[0] == -2);
	assert_int_equal(walk(BYTES(DW_OP_bregx, 0x80, 1, 0x7f), P8, &op), 1);
	assert_true(op.operand[0] == 128 && (int64_t)op.operand[1] == -1);
	assert_int_equal(walk(BYTES(DW_OP_implicit_pointer, 1, 0, 0, 0, 4), P8, &op), 1);
	assert_int_equal(walk(BYTES(DW_OP_implicit_pointer, 1, 0, 0, 0, 0, 0, 0, 0, 4), p64, &op),
			 1);
	assert_int_equal(
		walk(BYTES(DW_OP_GNU_implicit_pointer, 1, 0, 0, 0, 0, 0, 0, 0, 4), p2, &op), 1);
	assert_int_equal(walk(BYTES(DW_OP_call_ref, 1, 0, 0, 0), P8, &op), 1);
	assert_int_equal(walk(BYTES(DW_OP_implicit_value, 3, 1, 2, 3, DW_OP_stack_value), P8, &op),
			 2);
	assert_int_equal(
		walk(BYTES(DW_OP_const_type, 0x29, 2, 0xaa, 0xbb, DW_OP_convert, 0), P8, &op), 2);
	assert_int_equal(walk(BYTES(DW_OP_regval_type, 3, 0x29, DW_OP_deref_type, 8, 0x29,
				    DW_OP_xderef_type, 8, 0x29),
			      P8, &op),
			 3);
	assert_int_equal(walk(BYTES(DW_OP_GNU_parameter_ref, 1, 2, 3, 4, DW_OP_GNU_variable_value,
				    1, 2, 3, 4),
			      P8, &op),
			 2);
	assert_int_equal(
		walk(BYTES(DW_OP_GNU_encoded_addr, DW_EH_PE_udata4, 1, 2, 3, 4, DW_OP_GNU_uninit),
		     P8, &op),
		2);
	assert_int_equal(
		walk(BYTES(0xfb, 0x81, 1, 0xfc, 1, DW_OP_addrx, 0, DW_OP_constx, 2), P8, &op), 4);
	assert_int_equal(
		walk(BYTES(0xe9, 3, 0xe9, 5, 0x81, 1, 0xe9, 9, 1, 0x7f, 0xe9, 12, 3, 4), P8, &op),
		4);
	assert_true(op.user == 12 && op.n_operands == 2);
	assert_int_equal(
		walk(BYTES(DW_OP_bit_piece, 8, 0, DW_OP_piece, 4, DW_OP_bra, 0xfe, 0xff), P8, &op),
		3);
	assert_true((int64_t)op.operand[0] == -2);
	assert_int_equal(walk(NULL, 0, P8, &op), 0);
}

static void test_every_operator_is_bounded(void **state)
{
	(void)state;
	/* Whatever the operator: a walk over few bytes ends, within the bytes. */
	for (unsigned op = 0; op < 256; op++)
		for (unsigned fill = 0; fill < 256; fill += 0x7f)
			for (size_t size = 1; size < 12; size++) {
				uint8_t *bytes = malloc(size);
				memset(bytes, (int)fill, size);
				bytes[0] = (uint8_t)op;
				struct dwr_op last = { 0 };
				walk(bytes, size, P8, &last);
				assert_true(last.end <= size);
				free(bytes);
			}
}

static void test_nesting(void **state)
{
	(void)state;
	const uint8_t expr[] = { DW_OP_entry_value, 3, DW_OP_GNU_entry_value, 1, DW_OP_reg5,
				 DW_OP_stack_value };
	static const struct {
		uint8_t op, depth;
	} want[] = {
		{ DW_OP_entry_value, 0 },
		{ DW_OP_GNU_entry_value, 1 },
		{ DW_OP_reg5, 2 },
		{ DW_OP_stack_value, 0 },
	};
	struct dwr_expr_walk w = dwr_expr_walk(expr, sizeof expr, P8, ".test", 0);
	struct dwr_op op;
	bool more;
	for (size_t i = 0; i < 4; i++) {
		assert_null(dwr_expr_next(&w, &op, &more));
		assert_true(more && op.op == want[i].op && op.depth == want[i].depth);
	}
	assert_null(dwr_expr_next(&w, &op, &more));
	assert_false(more);

	assert_int_equal(walk(BYTES(DW_OP_entry_value, 0, DW_OP_nop), P8, &op), 2);
	assert_int_equal(walk(BYTES(DW_OP_entry_value, 4, DW_OP_nop), P8, &op), -1);
	/* An operand may not reach out of the inner expression. */
	assert_int_equal(walk(BYTES(DW_OP_entry_value, 1, DW_OP_const1u, 0), P8, &op), -1);
	uint8_t deep[40];
	for (unsigned i = 0; i < 40; i += 2) {
		deep[i] = DW_OP_entry_value;
		deep[i + 1] = (uint8_t)(38 - i);
	}
	assert_int_equal(walk(deep, 40, P8, &op), -1);
}

static void test_errors(void **state)
{
	(void)state;
	struct dwr_op op;
	assert_int_equal(walk(BYTES(DW_OP_addr, 1, 2, 3), P8, &op), -1);
	assert_int_equal(walk(BYTES(0x01), P8, &op), -1);
	assert_int_equal(walk(BYTES(0xe9, 0x50), P8, &op), -1);
	assert_int_equal(walk(BYTES(DW_OP_implicit_value, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
				    0xff, 0xff, 1),
			      P8, &op),
			 -1);
	assert_int_equal(walk(BYTES(DW_OP_GNU_encoded_addr, DW_EH_PE_uleb128, 1), P8, &op), -1);
	struct elfrw_addrmap map = make_map();
	uint8_t pcrel[] = {
		DW_OP_GNU_encoded_addr, DW_EH_PE_pcrel | DW_EH_PE_sdata8, 0, 0, 0, 0, 0, 0, 0, 0
	};
	struct dwr_expr_mapping mapping = { .map = &map };
	fails(dwr_expr_map(pcrel, sizeof pcrel, P8, ".test", 0, &mapping));
	elfrw_addrmap_deinit(&map);
}

struct refs {
	enum dwr_expr_ref ref[8];
	uint64_t value[8];
	int n;
};

static struct elfrw_err *note_ref(void *arg, enum dwr_expr_ref ref, uint64_t value,
				  const struct dwr_op *op)
{
	struct refs *r = arg;
	(void)op;
	assert_true(r->n < 8);
	r->ref[r->n] = ref;
	r->value[r->n++] = value;
	return NULL;
}

static uint64_t map_addr(const struct elfrw_addrmap *map, uint64_t value, int next)
{
	uint8_t expr[10] = { DW_OP_addr };
	struct dwr_expr_mapping mapping = { .map = map };
	elfrw_put64(expr + 1, value);
	expr[9] = (uint8_t)next;
	assert_null(dwr_expr_map(expr, next ? 10 : 9, P8, ".test", 0, &mapping));
	assert_int_equal(mapping.changed, elfrw_get64(expr + 1) != value);
	return elfrw_get64(expr + 1);
}

/* Long: expressions byte by byte. */
static void test_map(void **state)
{
	(void)state;
	struct elfrw_addrmap map = make_map();
	assert_int_equal(map_addr(&map, 0x1000, 0), 0x2000);
	assert_int_equal(map_addr(&map, 0x1010, DW_OP_stack_value), 0x2010);
	assert_int_equal(map_addr(&map, 0x1040, 0), 0x3000); /* the value of a pointer: the thunk */
	assert_int_equal(map_addr(&map, 0x1044, 0), 0x2004);
	assert_int_equal(map_addr(&map, 0x5000, 0), 0x5000);
	assert_int_equal(map_addr(&map, 0, 0), 0);
	assert_int_equal(map_addr(&map, 0x1000, DW_OP_GNU_push_tls_address), 0x1000);
	assert_int_equal(map_addr(&map, 0x1000, DW_OP_form_tls_address), 0x1000);

	uint8_t nested[] = { DW_OP_entry_value, 9, DW_OP_addr, 0x10, 0x10, 0, 0, 0, 0, 0, 0,
			     DW_OP_stack_value };
	struct dwr_expr_mapping mapping = { .map = &map };
	assert_null(dwr_expr_map(nested, sizeof nested, P8, ".test", 0, &mapping));
	assert_int_equal(elfrw_get64(nested + 3), 0x2010);
	uint8_t encoded[] = {
		DW_OP_GNU_encoded_addr, DW_EH_PE_absptr, 0x10, 0x10, 0, 0, 0, 0, 0, 0
	};
	assert_null(dwr_expr_map(encoded, sizeof encoded, P8, ".test", 0, &mapping));
	assert_int_equal(elfrw_get64(encoded + 2), 0x2010);

	struct refs r = { .n = 0 };
	uint8_t refs[] = { DW_OP_addrx,
			   7,
			   DW_OP_addrx,
			   8,
			   DW_OP_form_tls_address,
			   DW_OP_constx,
			   9,
			   DW_OP_convert,
			   0x21,
			   DW_OP_regval_type,
			   1,
			   0x22,
			   DW_OP_call4,
			   1,
			   0,
			   0,
			   0,
			   DW_OP_GNU_variable_value,
			   2,
			   0,
			   0,
			   0,
			   0xfb,
			   3 };
	mapping.fn = note_ref;
	mapping.arg = &r;
	assert_null(dwr_expr_map(refs, sizeof refs, P8, ".test", 0, &mapping));
	static const struct refs want = { { DWR_EXPR_ADDRX, DWR_EXPR_CONSTX, DWR_EXPR_CONSTX,
					    DWR_EXPR_TYPE, DWR_EXPR_TYPE, DWR_EXPR_UNIT_DIE,
					    DWR_EXPR_INFO_DIE, DWR_EXPR_ADDRX },
					  { 7, 8, 9, 0x21, 0x22, 1, 2, 3 },
					  8 };
	assert_int_equal(r.n, want.n);
	for (int i = 0; i < want.n; i++)
		assert_true(r.ref[i] == want.ref[i] && r.value[i] == want.value[i]);
	elfrw_addrmap_deinit(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_operands), cmocka_unit_test(test_every_operator_is_bounded),
		cmocka_unit_test(test_nesting),  cmocka_unit_test(test_errors),
		cmocka_unit_test(test_map),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
