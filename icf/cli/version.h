/* version.h: the program's version, in one place. */
#ifndef ICF_CLI_VERSION_H
#define ICF_CLI_VERSION_H
#define ICF_VERSION "1.0"
#endif
