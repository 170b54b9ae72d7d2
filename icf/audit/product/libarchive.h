/* libarchive.h: libarchive, which is opened when an archive is read.
 *
 * It loads libraries for XML and Unicode.  Their start takes longer than all of a small folding. */
#ifndef ICF_AUDIT_PRODUCT_LIBARCHIVE_H
#define ICF_AUDIT_PRODUCT_LIBARCHIVE_H
#include <archive.h>
#include <archive_entry.h>

/* clang-format off */
#define ICF_LIBARCHIVE(X) \
	X(archive_error_string) X(archive_set_error) X(archive_read_new) \
	X(archive_filter_bytes) X(archive_filter_count) X(archive_format) \
	X(archive_read_free) X(archive_read_open) X(archive_read_open_fd) \
	X(archive_read_next_header) X(archive_read_data) X(archive_read_set_option) \
	X(archive_read_support_filter_bzip2) X(archive_read_support_filter_gzip) \
	X(archive_read_support_filter_lzma) X(archive_read_support_filter_rpm) \
	X(archive_read_support_filter_xz) X(archive_read_support_filter_zstd) \
	X(archive_read_support_format_ar) X(archive_read_support_format_cpio) \
	X(archive_read_support_format_tar) X(archive_read_support_format_zip) \
	X(archive_entry_filetype) X(archive_entry_pathname)
/* clang-format on */

#define ICF_LIBARCHIVE_FUNCTION(name) __typeof__(name) *name;
struct icf_libarchive {
	ICF_LIBARCHIVE(ICF_LIBARCHIVE_FUNCTION)
};
#endif
