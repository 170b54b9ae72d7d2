/* page.c: the HTML reports.  Their parts are included from icf/audit/page/ by the assembler.  The
 * paths are relative to the folder that the compiler runs in: the top of the source tree. */
#include "icf/audit/page.h"
#include "elfrw/base/memstream.h"
#include "elfrw/base/newfile.h"
#include "elfrw/base/printable.h"
#include <string.h>
#include <stdlib.h>

#define TAKE_IN(name, path)                                       \
	__asm__(".pushsection .rodata.icf_page,\"a\",@progbits\n" \
		".globl " #name "\n"                              \
		".type " #name ",@object\n" #name ":\n"           \
		".incbin \"" path "\"\n"                          \
		".byte 0\n"                                       \
		".size " #name ", .-" #name "\n"                  \
		".popsection\n")

TAKE_IN(icf_page_style, "icf/audit/page/audit.css");
TAKE_IN(icf_page_body, "icf/audit/page/audit.html");
TAKE_IN(icf_page_script, "icf/audit/page/audit.js");
TAKE_IN(icf_page_next, "icf/audit/page/next.js");
TAKE_IN(icf_page_product_body, "icf/audit/page/product.html");
TAKE_IN(icf_page_product_script, "icf/audit/page/product.js");

/* Writes S as text between tags. */
static void put_escaped(FILE *f, const char *s)
{
	size_t len;
	unsigned code;
	for (const char *end = s + strlen(s); s < end; s += len) {
		len = elfrw_plain_bytes(s, (size_t)(end - s), &code);
		if (len == 1 && strchr("<>&\"", *s))
			fprintf(f, "&#%u;", code);
		else if (len)
			fwrite(s, 1, len, f);
		else {
			len = elfrw_utf8_bytes(s, (size_t)(end - s), &code);
			len += !len;
			elfrw_put_printable_n(f, s, len);
		}
	}
}

static struct elfrw_err *put_page(FILE *f, const struct icf_page *page)
{
	/* The policy enforces that the page loads nothing from anywhere. */
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<meta name=\"color-scheme\" content=\"light dark\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
	      "script-src 'unsafe-inline'; img-src data:\">\n"
	      "<link rel=\"icon\" href=\"data:,\">\n<title>",
	      f);
	put_escaped(f, page->title);
	fputs(" - icfold audit</title>\n<style>\n", f);
	fputs(icf_page_style, f);
	fputs("</style>\n</head>\n<body>\n", f);
	fputs(page->body, f);
	fputs("<script type=\"application/json\" id=\"data\">", f);
	ELFRW_TRY(page->put_data(f, page->ctx));
	fputs("</script>\n<script>\n", f);
	fputs(icf_page_next, f);
	fputs(page->script, f);
	fputs("</script>\n</body>\n</html>\n", f);
	return NULL;
}

static struct elfrw_err *save(const char *path, const char *data, size_t size)
{
	struct elfrw_newfile f = { 0 };
	ELFRW_TRY(elfrw_newfile_begin(&f, path, 0666));
	struct elfrw_err *err = elfrw_newfile_write(&f, data, size, 0);
	if (!err)
		err = elfrw_newfile_commit(&f);
	elfrw_newfile_drop(&f);
	return err;
}

struct elfrw_err *icf_page_write(const char *path, const struct icf_page *page)
{
	char *data = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&data, &size);
	struct elfrw_err *err = f ? put_page(f, page) : &elfrw_err_nomem;
	if (f && !elfrw_memstream_close(f, &data) && !err)
		err = &elfrw_err_nomem;
	if (!err)
		err = save(path, data, size);
	free(data);
	return err;
}
