/* package.c: see package.h.
 *
 * deb(5) and deb-control(5): the member control.tar* has a file "control" with a line "Package: ".
 * Alpine's packages have .PKGINFO with "pkgname = ".  Files of the others are named
 * NAME-VERSION-RELEASE.ARCH.rpm; a package that is named otherwise has its whole name. */
#include "icf/audit/package.h"
#include "elfrw/image.h"
#include "elfrw/note.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

static void keep(const char *name, size_t n, char ret[ICF_PACKAGE])
{
	snprintf(ret, ICF_PACKAGE, "%.*s", (int)(n < ICF_PACKAGE ? n : ICF_PACKAGE - 1), name);
}

/* The length of the N bytes at NAME without the last part, which begins at C. */
static size_t without_last(const char *name, size_t n, char c)
{
	const char *at = memrchr(name, c, n);
	return at && at > name ? (size_t)(at - name) : n;
}

bool icf_package_of_file(const char *file, char ret[ICF_PACKAGE])
{
	static const struct {
		const char *end;
		char version; /* what is in front of it */
	} form[] = {
		{ ".deb", '_' }, { ".udeb", '_' }, { ".ipk", '_' }, { ".rpm", '-' }, { ".apk", '-' }
	};
	const char *slash = strrchr(file, '/'), *colon = strrchr(file, ':');
	const char *name = slash > colon ? slash + 1 : colon ? colon + 1 : file;
	size_t n = strlen(name);
	for (size_t k = 0; k < sizeof form / sizeof *form; k++) {
		size_t m = strlen(form[k].end);
		if (n <= m || strcasecmp(name + n - m, form[k].end) != 0)
			continue;
		n -= m;
		const char *at = form[k].version == '_' ? memchr(name, '_', n) : NULL;
		if (at && at > name)
			n = (size_t)(at - name);
		/* The release and the version. */
		for (int part = 0; part < 2 && form[k].version == '-'; part++)
			n = without_last(name, n, '-');
		keep(name, n, ret);
		return true;
	}
	return false;
}

static bool ends_in(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);
	return n >= m && strcmp(s + n - m, end) == 0;
}

/* The value of the line of TEXT that begins with KEY. */
static bool find_line(const char *text, size_t n, const char *key, char ret[ICF_PACKAGE])
{
	size_t m = strlen(key);
	for (const char *end = text + n, *line = text; line < end;) {
		const char *next = memchr(line, '\n', (size_t)(end - line));
		size_t len = (size_t)((next ? next : end) - line);
		if (len > m && memcmp(line, key, m) == 0) {
			keep(line + m, strcspn(line + m, " \t\r\n"), ret);
			return *ret != 0;
		}
		line += len + 1;
	}
	return false;
}

bool icf_package_of_control(const char *member, const void *text, size_t n, char ret[ICF_PACKAGE])
{
	char copy[4096];
	n = n < sizeof copy ? n : sizeof copy - 1;
	memcpy(copy, text, n);
	copy[n] = 0;
	n = strlen(copy);
	if (ends_in(member, ":control") && strstr(member, "control.tar"))
		return find_line(copy, n, "Package: ", ret);
	if (strcmp(member, ".PKGINFO") == 0 || ends_in(member, ":.PKGINFO"))
		return find_line(copy, n, "pkgname = ", ret);
	return false;
}

/* The value of "name" in the JSON object of N bytes at S. */
static bool find_name(const char *s, size_t n, char ret[ICF_PACKAGE])
{
	static const char key[] = "\"name\"";
	const char *end = s + n, *p = memmem(s, n, key, sizeof key - 1);
	if (!p)
		return false;
	p += sizeof key - 1;
	while (p < end && (*p == ' ' || *p == ':'))
		p++;
	if (p == end || *p++ != '"')
		return false;
	const char *from = p;
	while (p < end && *p != '"' && *p != '\\' && *p)
		p++;
	keep(from, (size_t)(p - from), ret);
	return p < end && *p == '"' && *ret;
}

bool icf_package_of_program(const struct elfrw_image *img, char ret[ICF_PACKAGE])
{
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const struct elfrw_section *s = &img->section[i];
		struct elfrw_note note;
		if (s->hdr.sh_type != SHT_NOTE || !s->data)
			continue;
		struct elfrw_rbuf r = elfrw_rbuf(s->data, s->hdr.sh_size);
		while (elfrw_note_next(&r, 4, &note))
			if (elfrw_note_is(&note, "FDO", 0xcafe1a7e))
				return find_name((const char *)note.data, note.size, ret);
	}
	return false;
}
