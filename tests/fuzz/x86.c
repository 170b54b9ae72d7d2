/* x86.c: the decoder at every offset of the bytes. */
#include "tests/fuzz/fuzz.h"
#include "elfrw/arch/arch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size && i < 4096; i++) {
		struct elfrw_insn in;
		unsigned n = elfrw_arch_x86_64.decode(data + i, size - i, FUZZ_CODE + i, &in);
		FUZZ_HOLDS(n <= 15 && n <= size - i);
		if (!n)
			continue;
		FUZZ_HOLDS(in.len == n && in.opcode_off < n);
		FUZZ_HOLDS(!in.pcrel_size || in.pcrel_off + in.pcrel_size <= n);
		FUZZ_HOLDS(!in.disp_size || in.disp_off + in.disp_size <= n);
		FUZZ_HOLDS(!in.imm_size || in.imm_off + in.imm_size <= n);
		/* The same bytes without what follows, and far away. */
		struct elfrw_insn again;
		FUZZ_HOLDS(elfrw_arch_x86_64.decode(data + i, n, UINT64_MAX - 3, &again) == n);
		FUZZ_HOLDS(elfrw_arch_x86_64.decode(data + i, n - 1, FUZZ_CODE, &again) == 0);
	}
	for (uint32_t t = 0; t < 4 && size >= 4; t++)
		(void)elfrw_arch_x86_64.reloc(data[t] | (uint32_t)data[3 - t] << 8);
	return 0;
}
