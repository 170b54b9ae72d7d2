/* texts.c: see texts.h. */
#include "dwarf/rewrite/line/texts.h"
#include <stdlib.h>
#include <string.h>

static uint64_t hash_bytes(const uint8_t *p, size_t n)
{
	uint64_t h = 0xcbf29ce484222325;
	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3;
	return h ^ h >> 29;
}

static bool grow_slots(struct dwr_names *names)
{
	size_t n = names->n_slots ? 2 * names->n_slots : 256;
	uint32_t *slot = calloc(n, sizeof *slot);
	if (!slot)
		return false;
	for (size_t i = 0; i < names->name.len; i++) {
		size_t k = names->name.data[i].hash & (n - 1);
		while (slot[k])
			k = (k + 1) & (n - 1);
		slot[k] = (uint32_t)i + 1;
	}
	free(names->slot);
	names->slot = slot;
	names->n_slots = n;
	return true;
}

/* The slot of a string or, if it has none, the one that it would get. */
static size_t slot_for(const struct dwr_names *names, const void *str, size_t len, uint64_t hash)
{
	size_t k = hash & (names->n_slots - 1);
	for (; names->slot[k]; k = (k + 1) & (names->n_slots - 1)) {
		const struct dwr_name *n = &names->name.data[names->slot[k] - 1];
		if (n->hash == hash && n->len == len &&
		    !memcmp(names->bytes.data + n->off, str, len))
			break;
	}
	return k;
}

uint32_t dwr_names_number(struct dwr_names *names, const void *str, size_t len)
{
	if (2 * names->name.len >= names->n_slots && !grow_slots(names))
		return UINT32_MAX;
	uint64_t hash = hash_bytes(str, len);
	size_t k = slot_for(names, str, len, hash);
	if (names->slot[k])
		return names->slot[k] - 1;
	size_t off = names->bytes.len;
	elfrw_wbuf_bytes(&names->bytes, str, len);
	elfrw_wbuf_u8(&names->bytes, 0);
	struct dwr_name *n = names->bytes.bad || names->name.len >= UINT32_MAX - 1
				     ? NULL
				     : VEC_PUSH(&names->name);
	if (!n)
		return UINT32_MAX;
	*n = (struct dwr_name){ off, len, hash };
	names->slot[k] = (uint32_t)names->name.len;
	return (uint32_t)names->name.len - 1;
}

uint32_t dwr_names_find(const struct dwr_names *names, const void *str, size_t len)
{
	if (!names->n_slots)
		return UINT32_MAX;
	size_t k = slot_for(names, str, len, hash_bytes(str, len));
	return names->slot[k] ? names->slot[k] - 1 : UINT32_MAX;
}

const char *dwr_names_text(const struct dwr_names *names, uint32_t i)
{
	return (const char *)names->bytes.data + names->name.data[i].off;
}

void dwr_names_deinit(struct dwr_names *names)
{
	elfrw_wbuf_free(&names->bytes);
	VEC_FREE(&names->name);
	free(names->slot);
	*names = (struct dwr_names){ 0 };
}

/* Does STR lie in the section, maybe as the end of another string? */
static bool is_there(const struct dwr_line_texts *t, const char *str)
{
	return t->have.size && (uintptr_t)str - (uintptr_t)t->have.data < t->have.size;
}

bool dwr_line_texts_want(struct dwr_line_texts *t, const char *str)
{
	return is_there(t, str) || dwr_names_number(&t->wanted, str, strlen(str)) != UINT32_MAX;
}

struct elfrw_err *dwr_line_texts_place(struct dwr_line_texts *t, unsigned offset_size)
{
	const size_t n = t->wanted.name.len;
	size_t left = n;
	t->at = malloc((n + 1) * sizeof *t->at);
	if (!t->at)
		return &elfrw_err_nomem;
	memset(t->at, 0xff, (n + 1) * sizeof *t->at);
	const uint8_t *nul = NULL;
	for (size_t pos = 0; left && pos < t->have.size; pos = (size_t)(nul - t->have.data) + 1) {
		nul = memchr(t->have.data + pos, 0, t->have.size - pos);
		if (!nul)
			break;
		size_t len = (size_t)(nul - t->have.data) - pos;
		uint32_t i = dwr_names_find(&t->wanted, t->have.data + pos, len);
		if (i == UINT32_MAX || t->at[i] != UINT64_MAX)
			continue;
		t->at[i] = pos;
		left--;
	}
	/* A last string without an end must not get ours for its end. */
	if (left && t->have.size && t->have.data[t->have.size - 1])
		elfrw_wbuf_u8(&t->add, 0);
	for (uint32_t i = 0; i < n; i++) {
		if (t->at[i] != UINT64_MAX)
			continue;
		t->at[i] = t->have.size + t->add.len;
		elfrw_wbuf_bytes(&t->add, dwr_names_text(&t->wanted, i),
				 t->wanted.name.data[i].len + 1);
	}
	if (t->add.bad)
		return &elfrw_err_nomem;
	if (offset_size == 4 && (t->have.size + t->add.len) >> 32)
		return elfrw_error(".debug_line_str outgrows its offsets");
	return NULL;
}

uint64_t dwr_line_texts_at(const struct dwr_line_texts *t, const char *str)
{
	if (is_there(t, str))
		return (uint64_t)((uintptr_t)str - (uintptr_t)t->have.data);
	return t->at[dwr_names_find(&t->wanted, str, strlen(str))];
}

void dwr_line_texts_deinit(struct dwr_line_texts *t)
{
	elfrw_wbuf_free(&t->add);
	dwr_names_deinit(&t->wanted);
	free(t->at);
}
