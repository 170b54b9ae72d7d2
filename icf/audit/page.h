/* page.h: the parts of the HTML report that are the same for every program (icf/audit/page/), as
 * strings. */
#ifndef ICF_AUDIT_PAGE_H
#define ICF_AUDIT_PAGE_H
extern const char icf_page_style[], icf_page_body[], icf_page_script[];
#endif
