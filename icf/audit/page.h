/* page.h: the HTML reports: the parts that are the same for every program (icf/audit/page/), as
 * strings, and the writer. */
#ifndef ICF_AUDIT_PAGE_H
#define ICF_AUDIT_PAGE_H
#include "elfrw/base/err.h"
#include <stdio.h>

extern const char icf_page_style[], icf_page_body[], icf_page_script[], icf_page_next[];
extern const char icf_page_product_body[], icf_page_product_script[];

struct icf_page {
	const char *title;
	const char *body, *script;                         /* two of those above */
	struct elfrw_err *(*put_data)(FILE *f, void *ctx); /* one JSON value */
	void *ctx;
};

/* Writes the page to PATH, complete or not at all. */
struct elfrw_err *icf_page_write(const char *path, const struct icf_page *page);
#endif
