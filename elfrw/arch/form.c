/* form.c: reading and writing fields that are described by a form (form.h). */
#include "elfrw/arch/form.h"

static uint64_t low_bits(unsigned n)
{
	return n >= 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1;
}

uint64_t elfrw_form_mask(const struct elfrw_form *f)
{
	uint64_t mask = f->n_run ? 0 : low_bits(8u * f->bytes);
	for (unsigned i = 0; i < f->n_run; i++)
		mask |= low_bits(f->run[i].width) << f->run[i].at;
	return mask;
}

uint64_t elfrw_form_gather(const struct elfrw_form *f, uint64_t word)
{
	uint64_t n = 0;
	for (unsigned i = 0; i < f->n_run; i++)
		n |= (word >> f->run[i].at & low_bits(f->run[i].width)) << f->run[i].from;
	return f->n_run ? n : word;
}

uint64_t elfrw_form_scatter(const struct elfrw_form *f, uint64_t word, uint64_t number)
{
	if (!f->n_run)
		return number;
	word &= ~elfrw_form_mask(f);
	for (unsigned i = 0; i < f->n_run; i++)
		word |= (number >> f->run[i].from & low_bits(f->run[i].width)) << f->run[i].at;
	return word;
}

/* Half a page: what BASE_HIGH rounds by, so that the remainder fits a signed field. */
static uint64_t half_page(const struct elfrw_form *f)
{
	return (uint64_t)1 << (f->page - 1);
}

uint64_t elfrw_form_read(const struct elfrw_form *f, const uint8_t *p, uint64_t place)
{
	uint64_t n = elfrw_form_number(f, p) << f->shift;
	switch (f->base) {
	case ELFRW_BASE_ZERO: return n;
	case ELFRW_BASE_PAGE: return (place & ~low_bits(f->page)) + (n << f->page);
	case ELFRW_BASE_HIGH: return place + (n << f->page);
	case ELFRW_BASE_PLACE:
	case ELFRW_BASE_IN_PAGE:
	case ELFRW_BASE_REMAINDER:
	default: return place + n;
	}
}

/* The number, in bytes or pages, that TARGET has. */
static uint64_t wanted(const struct elfrw_form *f, uint64_t place, uint64_t target)
{
	uint64_t distance = target - place;
	switch (f->base) {
	case ELFRW_BASE_ZERO: return target;
	case ELFRW_BASE_PAGE:
		distance = (target & ~low_bits(f->page)) - (place & ~low_bits(f->page));
		return (uint64_t)((int64_t)distance >> f->page);
	case ELFRW_BASE_HIGH: return (uint64_t)((int64_t)(distance + half_page(f)) >> f->page);
	case ELFRW_BASE_IN_PAGE: return target & low_bits(f->page);
	case ELFRW_BASE_REMAINDER:
		return distance - ((distance + half_page(f)) & ~low_bits(f->page));
	default: return distance;
	}
}

bool elfrw_form_fits(const struct elfrw_form *f, uint64_t number)
{
	if (f->width >= 64)
		return true;
	uint64_t half = (uint64_t)1 << (f->width - 1);
	return (f->sign ? number + half : number) >> f->width == 0;
}

bool elfrw_form_write_packed(const struct elfrw_form *f, uint8_t *p, uint64_t place,
			     uint64_t target)
{
	uint64_t n = wanted(f, place, target);
	if (n & low_bits(f->shift))
		return false;
	n = f->sign ? (uint64_t)((int64_t)n >> f->shift) : n >> f->shift;
	if (!elfrw_form_fits(f, n))
		return false;
	elfrw_put_le(p, elfrw_form_scatter(f, f->n_run ? elfrw_get_le(p, f->bytes) : 0, n),
		     f->bytes);
	return true;
}

uint64_t elfrw_form_reach(const struct elfrw_form *f)
{
	unsigned bits = f->width + f->shift - f->sign + (elfrw_form_is_high(f) ? f->page : 0);
	return elfrw_form_is_low(f) || bits >= 63 ? INT64_MAX : low_bits(bits);
}
