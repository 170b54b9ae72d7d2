/* names.h: file names that outlive the handle they were read with. */
#ifndef ICF_VERIFY_LINES_NAMES_H
#define ICF_VERIFY_LINES_NAMES_H

/* Returns the same pointer for the same text. */
struct icf_vnames *icf_vnames_create(void);
void icf_vnames_destroy(struct icf_vnames *names);
const char *icf_vnames_get(struct icf_vnames *names, const char *text);
#endif
