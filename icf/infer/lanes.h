/* lanes.h: which of four numbers of 4 bytes lie in a range, asked of all at once. */
#ifndef ICF_INFER_LANES_H
#define ICF_INFER_LANES_H
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define ICF_LANES 4
typedef int32_t icf_lanes_t __attribute__((vector_size(4 * ICF_LANES)));

/* A range with at least one number.  A number is in it if it is at most MOST with ADD added: then
 * one comparison, of signed numbers, is enough. */
struct icf_lane_range {
	icf_lanes_t add, most;
};

static inline struct icf_lane_range icf_lane_range(int32_t lo, int32_t hi)
{
	const uint32_t add = (uint32_t)INT32_MIN - (uint32_t)lo;
	return (struct icf_lane_range){ (icf_lanes_t){ 0 } + (int32_t)add,
					(icf_lanes_t){ 0 } + (int32_t)((uint32_t)hi + add) };
}

static inline icf_lanes_t icf_lanes_at(const uint8_t *p)
{
	icf_lanes_t v;
	memcpy(&v, p, sizeof v);
	return v;
}

/* All bits of a lane are set if its number is in R. */
static inline icf_lanes_t icf_lanes_in(icf_lanes_t v, const struct icf_lane_range *r)
{
	typedef uint32_t wrapping __attribute__((vector_size(4 * ICF_LANES)));
	return (icf_lanes_t)((wrapping)v + (wrapping)r->add) <= r->most;
}

static inline bool icf_lanes_any(icf_lanes_t v)
{
	uint64_t m[2];
	memcpy(m, &v, sizeof m);
	return (m[0] | m[1]) != 0;
}
#endif
