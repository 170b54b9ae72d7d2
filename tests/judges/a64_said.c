/* a64_said.c: reads the text of an AArch64 instruction without aliases, and tells from its mnemonic
 * which registers it reads and writes.  Mostly the first operand is the result and all others are
 * read; the exceptions are below. */
#include "tests/judges/a64_said.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIT(n) (UINT64_C(1) << (n))

static bool begins(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

static bool is_one(const char *s, const char *const *names)
{
	for (; *names; names++)
		if (!strcmp(s, *names))
			return true;
	return false;
}

static bool begins_one(const char *s, const char *const *names)
{
	for (; *names; names++)
		if (begins(s, *names))
			return true;
	return false;
}

/* The general register at S, which ends where no letter or digit is; -1: none. */
static int reg_at(const char *s, bool *wide)
{
	int n, used = 0;
	*wide = *s != 'w';
	if (begins(s, "sp") && !isalnum((unsigned char)s[2]) && s[2] != '_')
		return 31;
	if (begins(s, "wsp") && !isalnum((unsigned char)s[3]))
		return 31;
	if ((begins(s, "xzr") || begins(s, "wzr")) && !isalnum((unsigned char)s[3]))
		return 32;
	if ((*s == 'x' || *s == 'w') && sscanf(s + 1, "%d%n", &n, &used) == 1 && n >= 0 &&
	    n <= 30 && !isalnum((unsigned char)s[1 + used]) && s[1] != '-')
		return n;
	return -1;
}

/* All general registers in TEXT. */
static uint64_t regs_in(const char *text)
{
	uint64_t set = 0;
	bool start = true, wide;
	for (; *text; text++) {
		int r = start ? reg_at(text, &wide) : -1;
		if (r >= 0 && r < 32)
			set |= BIT(r);
		start = !isalnum((unsigned char)*text) && *text != '_' && *text != '.';
	}
	return set;
}

static void parse_operand(struct said_operand *o, const char *text)
{
	size_t len = strlen(text);
	*o = (struct said_operand){ .kind = SAID_OTHER, .wide = true };
	snprintf(o->text, sizeof o->text, "%s", text);
	o->changes = len && text[len - 1] == '!';
	o->regs = regs_in(text);
	int r = reg_at(text, &o->wide);
	if (r >= 0) {
		o->kind = SAID_REGISTER;
		o->reg = (uint8_t)r;
	} else if (*text == '[') {
		const char *n = strchr(text, '#');
		o->kind = SAID_MEMORY;
		o->number = n ? strtoll(n + 1, NULL, 0) : 0;
	} else if (*text == '#') {
		o->kind = SAID_NUMBER;
		o->number = text[1] == '-' ? strtoll(text + 1, NULL, 0)
					   : (int64_t)strtoull(text + 1, NULL, 0);
	} else if (begins(text, "0x")) {
		o->kind = SAID_PLACE;
		o->number = (int64_t)strtoull(text, NULL, 16);
	}
}

/* --- what the mnemonic means --- */

/* Instructions whose first operand is no result. */
static bool has_no_result(const struct said *s)
{
	static const char *const first[] = { "b.",   "bc.",  "cb",   "tb",    "prf",
					     "ccm",  "rmif", "setf", "cterm", "wfet",
					     "wfit", "dcps", "bra",  "blra",  NULL };
	static const char *const whole[] = { "b",       "bl",   "br",   "blr", "ret",    "msr",
					     "sys",     "svc",  "hvc",  "smc", "brk",    "hlt",
					     "udf",     "hint", "dmb",  "dsb", "gcsstr", "gcssttr",
					     "tcancel", "msrr", "sysp", NULL };
	static const char *const status[] = { "stxr", "stlxr", "stxp", "stlxp", "st64bv", NULL };
	if (begins(s->name, "st"))
		return !begins_one(s->name, status);
	return begins_one(s->name, first) || is_one(s->name, whole);
}

static bool has_two_results(const struct said *s)
{
	static const char *const names[] = { "ldp",   "ldpsw",  "ldnp", "ldxp",
					     "ldaxp", "ldiapp", "mrrs", NULL };
	return is_one(s->name, names);
}

/* The result is a part of what was there. */
static bool keeps_result(const struct said *s)
{
	static const char *const names[] = { "movk", "bfm", "ldg", "bfi", "bfxil", "bfc", NULL };
	static const char *const first[] = { "inc",   "dec",   "sqinc", "sqdec", "uqinc",
					     "uqdec", "clast", "xpac",  NULL };
	if (begins(s->name, "pac") || begins(s->name, "aut"))
		return strcmp(s->name, "pacga") != 0;
	return is_one(s->name, names) || begins_one(s->name, first);
}

/* rcwclr, rcwsclr and so on */
static bool is_rcw(const struct said *s, const char *what)
{
	return begins(s->name, "rcw") &&
	       (begins(s->name + 3, what) || (s->name[3] == 's' && begins(s->name + 4, what)));
}

static bool is_swap(const struct said *s)
{
	return begins(s->name, "cas") || is_rcw(s, "cas");
}

/* The register is loaded and a second one changes memory. */
static bool is_atomic(const struct said *s)
{
	static const char *const first[] = { "ldadd",  "ldclr",  "ldeor",  "ldset", "ldsmax",
					     "ldsmin", "ldumax", "ldumin", "swp",   NULL };
	return begins_one(s->name, first) || is_rcw(s, "clr") || is_rcw(s, "set") ||
	       is_rcw(s, "swp");
}

static void result(struct said *s, unsigned i)
{
	if (i < s->n && s->op[i].kind == SAID_REGISTER && s->op[i].reg < 32) {
		s->writes |= BIT(s->op[i].reg);
		s->reads &= ~BIT(s->op[i].reg);
	}
}

/* Registers are read by all operands but the first N. */
static void read_from(struct said *s, unsigned n)
{
	for (unsigned i = n; i < s->n; i++)
		s->reads |= s->op[i].regs;
}

static void atomic_registers(struct said *s)
{
	if (is_swap(s) && s->n == 5) {
		result(s, 0);
		result(s, 1);
		read_from(s, 0);
	} else if (is_swap(s)) {
		result(s, 0);
		read_from(s, 0);
	} else if (s->n == 3 && s->op[0].kind == SAID_REGISTER) {
		bool two = begins(s->name, "swpp") || begins(s->name, "ldclrp") ||
			   begins(s->name, "ldsetp") || is_rcw(s, "clrp") || is_rcw(s, "setp") ||
			   is_rcw(s, "swpp");
		result(s, 1);
		if (two)
			result(s, 0);
		s->reads |= s->op[0].regs | s->op[2].regs | (two ? s->op[1].regs : 0);
	}
	s->loads = s->stores = true;
}

/* st64b and ld64b name the first of eight registers. */
static void eight_registers(struct said *s)
{
	unsigned data = s->n == 3 ? 1 : 0;
	uint64_t eight = (BIT(8) - 1) << s->op[data].reg & (BIT(31) - 1);
	s->reads = s->op[s->n - 1].regs;
	if (s->name[0] == 'l')
		s->writes = eight;
	else
		s->reads |= eight;
	if (data)
		s->writes |= s->op[0].regs;
}

/* Registers that have no operand: signatures of the return address. */
static void implied_registers(struct said *s)
{
	if (!strcmp(s->name, "hint") && s->n) {
		switch (s->op[0].number) {
		case 8:
		case 10:
		case 12:
		case 14:
			s->reads |= BIT(16) | BIT(17);
			s->writes |= BIT(17);
			break;
		case 7:
		case 24:
		case 26:
		case 28:
		case 30: s->reads |= BIT(30), s->writes |= BIT(30); break;
		case 25:
		case 27:
		case 29:
		case 31: s->reads |= BIT(30) | BIT(31), s->writes |= BIT(30); break;
		case 40: s->reads |= BIT(16), s->writes |= BIT(16); break;
		}
	}
	if (!strcmp(s->name, "retaa") || !strcmp(s->name, "retab"))
		s->reads |= BIT(30) | BIT(31);
	if (!strcmp(s->name, "ret") && !s->n)
		s->reads |= BIT(30);
}

static void registers(struct said *s)
{
	bool copies = s->n == 3 && s->op[0].kind == SAID_MEMORY && s->op[0].changes;
	if (is_atomic(s) || is_swap(s)) {
		atomic_registers(s);
		return;
	}
	if (begins(s->name, "st64b") || begins(s->name, "ld64b")) {
		eight_registers(s);
		return;
	}
	if (copies) {
		for (unsigned i = 0; i < s->n; i++) {
			s->reads |= s->op[i].regs;
			if (s->op[i].changes)
				s->writes |= s->op[i].regs;
		}
		return;
	}
	unsigned n = has_no_result(s) ? 0 : has_two_results(s) ? 2 : 1;
	if (n && s->n && s->op[0].kind != SAID_REGISTER)
		n = 0;
	for (unsigned i = 0; i < n; i++)
		result(s, i);
	read_from(s, keeps_result(s) ? 0 : n);
	for (unsigned i = 0; i < s->n; i++) {
		const struct said_operand *o = &s->op[i];
		if (o->kind != SAID_MEMORY || begins(o->text, "[z"))
			continue;
		/* [x0, 8]! and [x0], 8 */
		if (o->changes || (i + 1 < s->n && i))
			s->writes |= o->regs & ~(o->changes ? regs_in(strchr(o->text, ',')
									      ? strchr(o->text, ',')
									      : "")
							    : 0);
	}
	implied_registers(s);
}

static void memory(struct said *s)
{
	static const char *const loads[] = { "ld", "cpy", NULL };
	static const char *const stores[] = { "st", "cpy", "set", "gcsst", NULL };
	bool operand = false;
	for (unsigned i = 0; i < s->n; i++)
		operand |= s->op[i].kind == SAID_MEMORY || s->op[i].kind == SAID_PLACE;
	if (!operand)
		return;
	s->loads |= begins_one(s->name, loads);
	s->stores |= begins_one(s->name, stores);
}

/* Cuts TEXT at commas that are in no brackets. */
static void split(char *text, struct said *s)
{
	int depth = 0;
	char *start = text;
	for (char *p = text;; p++) {
		if (*p == '[' || *p == '{')
			depth++;
		else if (*p == ']' || *p == '}')
			depth--;
		if (*p && (*p != ',' || depth))
			continue;
		bool last = !*p;
		*p = 0;
		while (*start == ' ')
			start++;
		if (*start && s->n < SAID_OPERANDS)
			parse_operand(&s->op[s->n++], start);
		if (last)
			return;
		start = p + 1;
	}
}

void said_parse(char *text, struct said *s)
{
	*s = (struct said){ .n = 0 };
	text[strcspn(text, "\n")] = 0;
	for (const char *const *end = (const char *const[]){ "//", " ;", "\t;", NULL }; *end;
	     end++) {
		char *p = strstr(text, *end);
		if (p)
			*p = 0;
	}
	size_t n = strcspn(text, " \t");
	snprintf(s->name, sizeof s->name, "%.*s", (int)n, text);
	/* objdump prints all encodings near those of system registers as one; 0 is none. */
	bool none = (strstr(text, "s0_") || strstr(text, "S0_")) &&
		    (begins(text, "ms") || begins(text, "mr"));
	s->valid = s->name[0] && s->name[0] != '.' && !strstr(text, "undefined") && !none;
	if (text[n])
		split(text + n + 1, s);
	size_t len = s->n ? strlen(s->op[s->n - 1].text) : 0;
	while (len && isspace((unsigned char)s->op[s->n - 1].text[len - 1]))
		s->op[s->n - 1].text[--len] = 0;
	if (len && s->op[s->n - 1].text[len - 1] == '!')
		s->op[s->n - 1].changes = true;
	registers(s);
	memory(s);
}
