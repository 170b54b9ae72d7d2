/* collect.h: the files of a product. */
#ifndef ICF_AUDIT_PRODUCT_COLLECT_H
#define ICF_AUDIT_PRODUCT_COLLECT_H
#include "icf/audit/product/product.h"

/* Adds the files that the N operands name: files, archives, and of folders all ELF files and
 * archives below, in the order of their names.  Symbolic links in folders are not followed.
 * What cannot be read is added with the reason. */
struct elfrw_err *icf_product_collect(struct icf_product *p, char **operand, int n);

/* Is PATH one of P's files, or an archive of some? */
bool icf_product_reads(const struct icf_product *p, const char *path);

/* Marks copies of earlier files among the files that wait: the same file under another name, or the
 * same bytes. */
struct elfrw_err *icf_product_mark_copies(struct icf_product *p);

/* Adds a file in STATE; NULL: out of memory.  NAME and PATH (may be NULL) are copied. */
struct icf_product_file *icf_product_add(struct icf_product *p, const char *name, const char *path,
					 enum icf_product_state state);

/* F cannot be analysed, because of WHY (printf). */
struct elfrw_err *icf_product_bad(struct icf_product_file *f, const char *why, ...)
	__attribute__((format(printf, 2, 3)));

/* What the first N bytes of a file say of it.  ICF_KIND_COMPRESSED: an archive, or a single file.
 */
enum icf_product_kind { ICF_KIND_OTHER, ICF_KIND_ELF, ICF_KIND_ARCHIVE, ICF_KIND_COMPRESSED };
enum icf_product_kind icf_product_kind(const void *bytes, size_t n);

/* Is NAME the name of a package or an archive? */
bool icf_product_archive_name(const char *name);

/* Is a file of this kind and name opened as an archive, if nobody asked for it?  If its name does
 * not say that it is one, it may turn out to be none. */
bool icf_product_opens(enum icf_product_kind kind, const char *name);

/* Is PATH something that only the audit of a product takes: a folder or an archive? */
bool icf_product_takes(const char *path);
#endif
