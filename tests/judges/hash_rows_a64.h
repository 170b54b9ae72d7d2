/* hash_rows_a64.h: a part of hash_rows.c: addresses that two instructions of AArch64 make, a page
 * and an offset.  What registers hold is followed on all ways through a function. */
/* A reference that instruction W at VA makes. */
struct a64_ref {
	uint32_t mask; /* the bits of its field; 0: it makes none */
	uint64_t to;
	unsigned read;
};

/* The page that ADRP W at VA names, plus 1. */
static uint64_t a64_page(uint32_t w, uint64_t va)
{
	uint64_t imm = (uint64_t)(w >> 5 & 0x7ffff) << 2 | (w >> 29 & 3);
	return (va & ~(uint64_t)4095) + (uint64_t)((int64_t)(imm << 43) >> 31) + 1;
}

static bool is_adrp(uint32_t w)
{
	return (w & 0x9f000000) == 0x90000000;
}

/* PAGE: by register, the page whose address it holds, plus 1; or 0: none; MAYBE: some page or none;
 * UNSET: what the caller had there, which no function uses but to restore it. */
#define MAYBE UINT64_MAX
#define UNSET (UINT64_MAX - 1)
static struct a64_ref a64_ref(uint32_t w, uint64_t va, const uint64_t page[32])
{
	uint64_t base = page[w >> 5 & 31] == UNSET ? 0 : page[w >> 5 & 31];
	if ((w & 0x7c000000) == 0x14000000)
		return (struct a64_ref){ 0x3ffffff,
					 va + (uint64_t)((int64_t)((uint64_t)w << 38) >> 36), 0 };
	if ((w & 0xfe000000) == 0x54000000 || (w & 0x7e000000) == 0x34000000)
		return (struct a64_ref){ 0xffffe0,
					 va + (uint64_t)((int64_t)((uint64_t)(w >> 5) << 45) >> 43),
					 0 };
	if ((w & 0x7e000000) == 0x36000000)
		return (struct a64_ref){ 0x7ffe0,
					 va + (uint64_t)((int64_t)((uint64_t)(w >> 5) << 50) >> 48),
					 0 };
	if ((w & 0x9f000000) == 0x10000000) {
		uint64_t imm = (uint64_t)(w >> 5 & 0x7ffff) << 2 | (w >> 29 & 3);
		return (struct a64_ref){ 0x60ffffe0, va + (uint64_t)((int64_t)(imm << 43) >> 43),
					 0 };
	}
	bool add = (w & 0xffc00000) == 0x91000000, memory = (w & 0x3b000000) == 0x39000000;
	if ((add || memory) && base == MAYBE)
		return (struct a64_ref){ 0x3ffc00, MAYBE, 0 };
	if (add && base)
		return (struct a64_ref){ 0x3ffc00, base - 1 + (w >> 10 & 4095), 0 };
	if (memory && base) {
		unsigned shift = (w & 0x04800000) == 0x04800000 ? 4 : w >> 30;
		return (struct a64_ref){ 0x3ffc00, base - 1 + ((uint64_t)(w >> 10 & 4095) << shift),
					 1U << shift };
	}
	return (struct a64_ref){ 0 };
}

/* What the registers hold behind W at VA. */
static void a64_step(uint32_t w, uint64_t va, uint64_t page[32])
{
	if (is_adrp(w)) {
		page[w & 31] = a64_page(w, va);
		return;
	}
	if ((w & 0xfc000000) == 0x94000000 || (w & 0xfffffc1f) == 0xd63f0000)
		memset(page, 0, 19 * sizeof *page);
	bool branch = (w & 0x1c000000) == 0x14000000, memory = (w & 0x0a000000) == 0x08000000,
	     load = w & 0x00400000;
	bool vector = memory ? w & 0x04000000 : (w & 0x0e000000) == 0x0e000000;
	bool compares = (w & 0x3fe00010) == 0x3a400000; /* ccmp, ccmn: flags are there */
	if (!branch && !vector && !compares && (!memory || load))
		page[w & 31] = 0;
	/* Numbers go from vector registers to others: fcvt and fmov (not scvtf, ucvtf, and fmov the
	 * other way); smov, umov. */
	unsigned op = w >> 16 & 7;
	if (((w & 0x5f20fc00) == 0x1e200000 && op != 2 && op != 3 && op != 7) ||
	    (w & 0xbfe0ec00) == 0x0e002c00)
		page[w & 31] = 0;
	if ((w & 0x3a000000) == 0x28000000 && load && !vector)
		page[w >> 10 & 31] = 0;
}

/* Does control go on behind W?  Not behind b, br, ret, brk, udf. */
static bool goes_on(uint32_t w)
{
	return (w & 0xfc000000) != 0x14000000 && (w & 0xff9ff000) != 0xd61f0000 &&
	       (w & 0xffe0001f) != 0xd4200000 && w >> 16;
}

/* Does the import at the stub TO never return?  Landing pads follow calls of such. */
static bool never_returns(const struct program *p, uint64_t to)
{
	static const char *const name[] = {
		"__stack_chk_fail", "_Unwind_Resume", "abort",         "exit",           "_exit",
		"__cxa_throw",      "__cxa_rethrow",  "__assert_fail", "_ZSt9terminatev"
	};
	const struct slot *t = stub(p, to);
	for (size_t i = 0; t && t->name && i < sizeof name / sizeof *name; i++)
		if (strcmp(t->name, name[i]) == 0)
			return true;
	return t && t->name && strncmp(t->name, "_ZSt", 4) == 0 && strstr(t->name, "__throw_");
}

struct a64_flow {
	const struct program *p;
	uint64_t va, n;
	const uint8_t *code;
	uint64_t (*in)[32]; /* by instruction */
	uint8_t *reached;
	uint64_t *todo, n_todo;
};

/* What a register holds that holds A or B. */
static uint64_t a64_either(uint64_t a, uint64_t b)
{
	return a == UNSET ? b : a == b || b == UNSET ? a : a == MAYBE || b == MAYBE ? MAYBE : 0;
}

/* Control reaches instruction I with PAGE. */
static void a64_reach(struct a64_flow *f, uint64_t i, const uint64_t page[32])
{
	bool new = i < f->n && !f->reached[i];
	if (i >= f->n)
		return;
	for (unsigned r = 0; r < 32; r++) {
		uint64_t now = f->reached[i] ? a64_either(f->in[i][r], page[r]) : page[r];
		new |= f->reached[i] && now != f->in[i][r];
		f->in[i][r] = now;
	}
	f->reached[i] = 1;
	if (new)
		f->todo[f->n_todo++] = i;
}

static void a64_follow(struct a64_flow *f)
{
	while (f->n_todo) {
		uint64_t i = f->todo[--f->n_todo], page[32];
		uint32_t w;
		memcpy(page, f->in[i], sizeof page);
		memcpy(&w, f->code + 4 * i, 4);
		struct a64_ref r = a64_ref(w, f->va + 4 * i, page);
		a64_step(w, f->va + 4 * i, page);
		bool call = (w & 0xfc000000) == 0x94000000;
		if (goes_on(w) && !(call && never_returns(f->p, r.to)))
			a64_reach(f, i + 1, page);
		if (r.mask && (w & 0x1c000000) == 0x14000000 && !call && r.to >= f->va)
			a64_reach(f, (r.to - f->va) / 4, page);
	}
}

/* What the registers hold where only a jump table or an exception leads: nobody follows these here.
 * If the function puts one page alone into a register that calls keep, and nothing else, it is
 * that; else it may be any. */
static void a64_guess(const struct a64_flow *f, uint64_t page[32])
{
	bool other[32] = { false };
	uint64_t before[32], after[32];
	uint32_t w;
	memset(page, 0, 32 * sizeof *page);
	memset(before, 1, sizeof before);
	for (uint64_t i = 0; i < f->n; i++) {
		memcpy(&w, f->code + 4 * i, 4);
		uint64_t to = is_adrp(w) ? a64_page(w, f->va + 4 * i) : 0;
		memcpy(after, before, sizeof after);
		a64_step(w, f->va + 4 * i, after);
		for (unsigned r = 0; r < 32 && !to; r++)
			other[r] |= !after[r];
		if (!to)
			continue;
		other[w & 31] |= page[w & 31] && page[w & 31] != to;
		page[w & 31] = to;
	}
	for (unsigned r = 0; r < 32; r++)
		if (page[r] && (r < 19 || r > 28 || other[r]))
			page[r] = MAYBE;
		else if (!page[r] && !other[r] && r >= 19 && r <= 28)
			page[r] = UNSET;
}

/* By instruction, what the registers hold in front of it, on all ways.  To be freed. */
static uint64_t (*a64_pages(const struct program *p, const uint8_t *code, uint64_t n,
			    uint64_t va))[32]
{
	struct a64_flow f = { .p = p, .va = va, .n = n, .code = code };
	uint64_t page[32] = { 0 };
	f.in = malloc((n + 1) * sizeof *f.in);
	f.reached = calloc(n + 1, 1);
	/* An instruction is reached anew three times for each register, at most. */
	f.todo = malloc((n + 1) * 98 * sizeof *f.todo);
	for (unsigned r = 19; r <= 28; r++)
		page[r] = UNSET;
	a64_reach(&f, 0, page);
	a64_follow(&f);
	a64_guess(&f, page);
	for (uint64_t i = 0; i < n; i++)
		if (!f.reached[i]) {
			a64_reach(&f, i, page);
			a64_follow(&f);
		}
	free(f.reached);
	free(f.todo);
	return f.in;
}
