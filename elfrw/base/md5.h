/* md5.h: the number by which LLVM names a function in .pseudo_probe. */
#ifndef ELFRW_BASE_MD5_H
#define ELFRW_BASE_MD5_H
#include <stddef.h>
#include <stdint.h>

/* The first 8 bytes of the MD5 (RFC 1321) of the N bytes at DATA, little-endian. */
uint64_t elfrw_md5_low(const void *data, size_t n);
#endif
