/* strings.c: numbers for strings; see state.h. */
#include "icf/export/state.h"

static uint64_t hash_of(const char *s, size_t n)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < n; i++)
		h = (h ^ (uint8_t)s[i]) * UINT64_C(0x100000001b3);
	return h ^ h >> 29;
}

const char *icf_strings_get(const struct icf_strings *s, uint32_t number)
{
	return (const char *)s->bytes.data + s->off.data[number];
}

/* Doubles the table. */
static bool grow(struct icf_strings *s)
{
	size_t n = s->n_slots ? 2 * s->n_slots : 1024;
	uint32_t *slot = calloc(n, sizeof *slot);
	if (!slot)
		return false;
	for (uint32_t i = 0; i < s->off.len; i++) {
		const char *text = icf_strings_get(s, i);
		size_t k = hash_of(text, strlen(text)) & (n - 1);
		while (slot[k])
			k = (k + 1) & (n - 1);
		slot[k] = i + 1;
	}
	free(s->slot);
	s->slot = slot;
	s->n_slots = n;
	return true;
}

struct elfrw_err *icf_strings_add(struct icf_strings *s, const char *text, size_t n, uint32_t *ret)
{
	if (2 * s->off.len >= s->n_slots && !grow(s))
		return &elfrw_err_nomem;
	size_t k = hash_of(text, n) & (s->n_slots - 1);
	for (; s->slot[k]; k = (k + 1) & (s->n_slots - 1)) {
		const char *other = icf_strings_get(s, s->slot[k] - 1);
		if (!strncmp(other, text, n) && !other[n]) {
			*ret = s->slot[k] - 1;
			return NULL;
		}
	}
	if (s->bytes.len + n >= UINT32_MAX)
		return elfrw_error("names are larger than 4 GiB together");
	uint32_t *off = VEC_PUSH(&s->off);
	if (!off)
		return &elfrw_err_nomem;
	*off = (uint32_t)s->bytes.len;
	elfrw_wbuf_bytes(&s->bytes, text, n);
	elfrw_wbuf_u8(&s->bytes, 0);
	if (s->bytes.bad)
		return &elfrw_err_nomem;
	*ret = (uint32_t)s->off.len - 1;
	s->slot[k] = *ret + 1;
	return NULL;
}

void icf_strings_deinit(struct icf_strings *s)
{
	elfrw_wbuf_free(&s->bytes);
	VEC_FREE(&s->off);
	free(s->slot);
}
