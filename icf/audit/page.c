/* page.c: the parts of the HTML report, included from icf/audit/page/ by the assembler.  The paths
 * are relative to the folder that the compiler runs in: the top of the source tree. */
#include "icf/audit/page.h"

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
