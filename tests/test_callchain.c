/* test_callchain.c: who was called, on programs made here byte by byte, and on files: `test_callchain --resolve FILE` reads stacks
 * (hexadecimal addresses, one a line, innermost first; an empty line ends a stack) and prints one line a level:
 * "- ..." for code that is not shared, else by what it was decided (? when it was not) and the old addresses of the candidates. */
#include "dwarf/callchain.h"
#include "elfrw/image.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int complain(struct elfrw_err *err)
{
	fprintf(stderr, "%s\n", elfrw_err_text(err));
	elfrw_err_free(err);
	return 1;
}

static struct elfrw_err *print_stack(struct dwr_callchain *cc, struct dwr_chain *chain, const uint64_t *addr, size_t n)
{
	const struct dwr_icfold *note = dwr_callchain_note(cc);
	ELFRW_TRY(dwr_callchain_resolve(cc, addr, NULL, n, chain));
	for (size_t i = 0; i < n; i++) {
		const struct dwr_chain_frame *f = &chain->frame.data[i];
		const char *by = dwr_chain_by_text((enum dwr_chain_by)f->by);
		printf("%s", f->merged ? by ? by : "?" : "-");
		for (uint32_t k = 0; k < f->n; k++) {
			const struct dwr_chain_member *m = &chain->member.data[f->first + k];
			printf(" %llx", (unsigned long long)(note ? note->map.unit[note->member[m->member].unit].old : m->die));
		}
		printf("\n");
	}
	printf("\n");
	return NULL;
}

static int resolve_file(const char *path)
{
	struct elfrw_image img;
	struct dwr_callchain *cc;
	struct elfrw_err *err = elfrw_image_open(&img, path);
	if (err)
		return complain(err);
	err = dwr_callchain_open(&img, NULL, &cc);
	if (!err) {
		struct dwr_chain chain = { 0 };
		VEC(uint64_t) stack = { 0 };
		char line[64];
		while (!err && fgets(line, sizeof line, stdin)) {
			if (line[0] != '\n') {
				uint64_t *slot = VEC_PUSH(&stack);
				if (slot)
					*slot = strtoull(line, NULL, 16);
				continue;
			}
			err = print_stack(cc, &chain, stack.data, stack.len);
			stack.len = 0;
		}
		VEC_FREE(&stack);
		dwr_chain_deinit(&chain);
		dwr_callchain_close(cc);
	}
	elfrw_image_close(&img);
	return err ? complain(err) : 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--resolve") == 0)
		return resolve_file(argv[2]);
	return 0;
}
