/* pool.c: see pool.h.  FNV-1a and linear probing; one allocation for all strings. */
#include "icf/audit/pool.h"

static size_t hash(const char *s, size_t n)
{
	uint64_t h = 0xcbf29ce484222325;
	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)s[i]) * 0x100000001b3;
	return (size_t)(h ^ h >> 29);
}

const char *icf_pool_text(const struct icf_pool *pool, uint32_t id)
{
	return pool->text.data + pool->start.data[id];
}

static bool grow(struct icf_pool *pool)
{
	size_t n = pool->n_slots ? 2 * pool->n_slots : 1024;
	uint32_t *slot = calloc(n, sizeof *slot);
	if (!slot)
		return false;
	for (size_t i = 0; i < pool->start.len; i++) {
		const char *s = icf_pool_text(pool, (uint32_t)i);
		size_t k = hash(s, strlen(s)) & (n - 1);
		while (slot[k])
			k = (k + 1) & (n - 1);
		slot[k] = (uint32_t)i + 1;
	}
	free(pool->slot);
	pool->slot = slot;
	pool->n_slots = n;
	return true;
}

/* The slot that holds the string, or the empty one where it belongs. */
static uint32_t *find(const struct icf_pool *pool, const char *s, size_t n)
{
	size_t k = hash(s, n) & (pool->n_slots - 1);
	for (; pool->slot[k]; k = (k + 1) & (pool->n_slots - 1)) {
		const char *t = icf_pool_text(pool, pool->slot[k] - 1);
		if (strncmp(t, s, n) == 0 && !t[n])
			break;
	}
	return &pool->slot[k];
}

uint32_t icf_pool_find(const struct icf_pool *pool, const char *s, size_t n)
{
	return pool->n_slots ? *find(pool, s, n) - 1 : ICF_POOL_NONE;
}

uint32_t icf_pool_add(struct icf_pool *pool, const char *s, size_t n)
{
	if (2 * pool->start.len >= pool->n_slots &&
	    (pool->start.len > UINT32_MAX / 4 || !grow(pool)))
		return ICF_POOL_NONE;
	uint32_t *slot = find(pool, s, n);
	if (*slot)
		return *slot - 1;
	if (!VEC_RESERVE(&pool->text, pool->text.len + n + 1) ||
	    !VEC_RESERVE(&pool->start, pool->start.len + 1))
		return ICF_POOL_NONE;
	pool->start.data[pool->start.len++] = pool->text.len;
	memcpy(pool->text.data + pool->text.len, s, n);
	pool->text.data[pool->text.len + n] = 0;
	pool->text.len += n + 1;
	*slot = (uint32_t)pool->start.len;
	return *slot - 1;
}

void icf_pool_deinit(struct icf_pool *pool)
{
	VEC_FREE(&pool->text);
	VEC_FREE(&pool->start);
	free(pool->slot);
	*pool = (struct icf_pool){ 0 };
}
