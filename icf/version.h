/* version.h: the program's version, in one place. */
#ifndef ICF_VERSION_H
#define ICF_VERSION_H
#define ICF_VERSION "0.1"
#endif
