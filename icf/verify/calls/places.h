/* places.h: the places that symbolize.c asks for. */
#ifndef ICF_VERIFY_CALLS_PLACES_H
#define ICF_VERIFY_CALLS_PLACES_H
#include "icf/verify/state.h"

/* Orders the places by unit, offset and kind. */
struct elfrw_err *icf_vplaces_sort(struct icf_vplaces *p);

/* Gives the starts of all units and, if CALLS, all calls of V->site, which is freed, to the one of
 * N parts that has the unit's rows. */
struct elfrw_err *icf_vplaces_deal(struct icf_v *v, struct icf_vplaces *part, size_t n, bool calls);
#endif
