/* pieces.h: loadable segments of the output: what is left of each, and its place in the file. */
#ifndef ELFRW_PIECES_H
#define ELFRW_PIECES_H
#include "elfrw/output.h"

/* May section I move in memory, to make room for program headers?  Then its new address is
 * out->sec[i].addr. */
bool elfrw_may_make_room(const struct elfrw_output *out, uint32_t i);

/* Cuts the segments: fills out->piece, and counts the cuts in n_split and n_unsplit. */
struct elfrw_err *elfrw_make_pieces(struct elfrw_output *out);

/* Gives each piece its offset.  Sets out->file_size to the end of the last one. */
void elfrw_place_pieces(struct elfrw_output *out);
#endif
