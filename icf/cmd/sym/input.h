/* input.h: lines of standard input, for those who wait for the answers. */
#ifndef ICF_CMD_SYM_INPUT_H
#define ICF_CMD_SYM_INPUT_H
#include <stdbool.h>
#include <stddef.h>

struct elfrw_err;

/* Zeroed once. */
struct icf_input {
	char *data; /* owned */
	size_t len, cap, at;
	bool end; /* there is no more */
};

/* Waits for more input.  What was printed is flushed first.  Lines handed out before are gone. */
struct elfrw_err *icf_input_more(struct icf_input *in);

/* The next whole line, without its end; NULL: none is there yet.  Valid until icf_input_more(). */
char *icf_input_line(struct icf_input *in);

/* Does whoever writes the input wait for answers, as far as one can see: more may come, and nothing
 * is there yet? */
bool icf_input_waits(void);

void icf_input_deinit(struct icf_input *in);
#endif
