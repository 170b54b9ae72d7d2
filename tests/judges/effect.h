/* effect.h: what the decoder's judge asks of effect.c. */
#ifndef TESTS_JUDGES_EFFECT_H
#define TESTS_JUDGES_EFFECT_H
#include <Zydis/Zydis.h>

struct elfrw_insn;

/* How Zydis' account of what the instruction does to registers and memory differs from
 * elfrw/arch/x86_64_effect.c's, or NULL. */
const char *effect_differs(const ZydisDecoder *zydis, const ZydisDecoderContext *ctx,
			   const ZydisDecodedInstruction *z, const struct elfrw_insn *in,
			   const uint8_t *code);
#endif
