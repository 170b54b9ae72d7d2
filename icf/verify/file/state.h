/* state.h: shared by the files that compare headers. */
#ifndef ICF_VERIFY_FILE_STATE_H
#define ICF_VERIFY_FILE_STATE_H
#include "icf/verify/claim.h"
#include "icf/verify/log.h"

/* section.c: the headers of all sections; entry 0 of IMG, which is OUT or a part of it. */
void icf_vfile_sections(const struct icf_vclaim *c, struct icf_vlog *log);
void icf_vfile_null(struct icf_vlog *log, const struct elfrw_image *img);
/* load.c: the loaded segments of OUT. */
void icf_vfile_loads(const struct icf_vclaim *c, struct icf_vlog *log);
/* The loaded segment that holds [VA, VA + SIZE), or NULL. */
const Elf64_Phdr *icf_vfile_load_at(const struct elfrw_image *img, uint64_t va, uint64_t size);
/* segment.c: all other segments, and the contents of IN's memory. */
void icf_vfile_segments(const struct icf_vclaim *c, struct icf_vlog *log);
#endif
