/* host.h: the machine that the program itself runs on. */
#ifndef ELFRW_ARCH_HOST_H
#define ELFRW_ARCH_HOST_H
#include <stdint.h>
#include <ucontext.h>

/* Where a signal stopped this process: the program counter and the stack pointer; zeros where the
 * machine is not known. */
static inline void elfrw_host_stopped(const ucontext_t *u, uint64_t *pc, uint64_t *sp)
{
#if defined(__x86_64__)
	*pc = (uint64_t)u->uc_mcontext.gregs[REG_RIP];
	*sp = (uint64_t)u->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
	*pc = u->uc_mcontext.pc;
	*sp = u->uc_mcontext.sp;
#else
	(void)u;
	*pc = *sp = 0;
#endif
}
#endif
