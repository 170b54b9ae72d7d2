/* expr.c: DWARF expressions; the first byte chooses version, address size and offset size. */
#include "tests/fuzz/fuzz.h"
#include "dwarf/expr.h"
#include <string.h>

static struct elfrw_err *note(void *arg, enum dwr_expr_ref ref, uint64_t value,
			      const struct dwr_op *op)
{
	(void)ref;
	(void)value;
	FUZZ_HOLDS(op->off < op->end && op->end <= *(const size_t *)arg);
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	struct dwr_form_params p = { (uint8_t)(2 + data[0] % 4), data[0] & 4 ? 4 : 8,
				     data[0] & 8 ? 8 : 4 };
	size_t n = size - 1;
	uint8_t *copy = malloc(n + !n);
	if (!copy)
		abort();
	memcpy(copy, data + 1, n);
	struct dwr_expr_walk w = dwr_expr_walk(copy, n, p, ".debug_info", 0);
	struct dwr_op op;
	bool more = true;
	while (fuzz_ok(dwr_expr_next(&w, &op, &more)) && more)
		FUZZ_HOLDS(op.end <= n && op.depth <= DWR_EXPR_MAX_DEPTH && op.n_operands <= 3);
	struct elfrw_addrmap map;
	fuzz_map_init(&map);
	struct dwr_expr_mapping mapping = { .map = &map, .fn = note, .arg = &n };
	(void)fuzz_ok(dwr_expr_map(copy, n, p, ".debug_info", 0, &mapping));
	elfrw_addrmap_deinit(&map);
	free(copy);
	return 0;
}
