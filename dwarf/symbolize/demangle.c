/* demangle.c: a cache of readable names: a profile asks for the same ones again and again. */
#include "dwarf/symbolize/state.h"

struct dwr_demangled {
	const char *name;   /* as given: a string that outlives the table; NULL: empty slot */
	const char *result; /* in the arena, or the name itself */
};

static const char *make(struct dwr_sym *sym, const char *name)
{
	char *text, *s;
	if (!dwr_demangle(name, sym->spelling, &text)) {
		sym->nomem = true;
		return name;
	}
	if (!text)
		return name;
	size_t size = strlen(text) + 1;
	if ((s = dwr_arena_alloc(&sym->arena, size)))
		memcpy(s, text, size);
	else
		sym->nomem = true;
	free(text);
	return s ? s : name;
}

/* SIZE: of NAME with its NUL. */
static size_t slot_of(const char *name, size_t size, size_t n_slots)
{
	uint64_t h = size, word;
	for (; size >= sizeof word; name += sizeof word, size -= sizeof word) {
		memcpy(&word, name, sizeof word);
		h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 32;
	}
	word = 0;
	memcpy(&word, name, size);
	h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return (size_t)(h >> 32) & (n_slots - 1);
}

static bool grow(struct dwr_sym *sym)
{
	size_t n = sym->n_demangled_slots ? 2 * sym->n_demangled_slots : 256;
	struct dwr_demangled *t = calloc(n, sizeof *t);
	if (!t)
		return false;
	for (size_t i = 0; i < sym->n_demangled_slots; i++)
		if (sym->demangled[i].name) {
			const char *name = sym->demangled[i].name;
			size_t k = slot_of(name, strlen(name) + 1, n);
			while (t[k].name)
				k = (k + 1) & (n - 1);
			t[k] = sym->demangled[i];
		}
	free(sym->demangled);
	sym->demangled = t;
	sym->n_demangled_slots = n;
	return true;
}

const char *dwr_sym_demangle(struct dwr_sym *sym, const char *name)
{
	if (name[0] != '_')
		return name;
	if (2 * sym->n_demangled >= sym->n_demangled_slots && !grow(sym)) {
		sym->nomem = true;
		return name;
	}
	size_t size = strlen(name) + 1, k = slot_of(name, size, sym->n_demangled_slots);
	for (; sym->demangled[k].name; k = (k + 1) & (sym->n_demangled_slots - 1))
		if (!strcmp(sym->demangled[k].name, name))
			return sym->demangled[k].result;
	char *own = dwr_arena_alloc(&sym->arena, size);
	if (!own) {
		sym->nomem = true;
		return name;
	}
	memcpy(own, name, size);
	sym->demangled[k] = (struct dwr_demangled){ own, make(sym, own) };
	sym->n_demangled++;
	return sym->demangled[k].result;
}

void dwr_sym_demangled_free(struct dwr_sym *sym)
{
	free(sym->demangled);
}
