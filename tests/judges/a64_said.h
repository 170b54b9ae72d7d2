/* a64_said.h: what the text of an AArch64 instruction says. */
#ifndef TESTS_JUDGES_A64_SAID_H
#define TESTS_JUDGES_A64_SAID_H
#include <stdbool.h>
#include <stdint.h>

#define SAID_OPERANDS 6

enum said_kind { SAID_OTHER, SAID_REGISTER, SAID_MEMORY, SAID_NUMBER, SAID_PLACE };

struct said_operand {
	uint8_t kind;
	uint8_t reg;    /* SAID_REGISTER: a general one; 31: the stack pointer, 32: the zero one */
	bool wide;      /* of 64 bits */
	bool changes;   /* followed by an exclamation mark */
	uint64_t regs;  /* all general registers in it: bit N */
	int64_t number; /* SAID_NUMBER; SAID_MEMORY: the displacement; SAID_PLACE: the address */
	char text[48];
};

struct said {
	char name[24];
	unsigned n;
	struct said_operand op[SAID_OPERANDS];
	bool valid;
	uint64_t reads, writes; /* general registers */
	bool loads, stores;
};

/* Reads TEXT, a mnemonic and operands as `objdump -M no-aliases` prints them; changes TEXT. */
void said_parse(char *text, struct said *ret);
#endif
