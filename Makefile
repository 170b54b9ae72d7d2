# icfold: see README.md.  `make` builds build/icfold; `make demo` and `make check` install what they miss.
PREFIX ?= /usr/local
DESTDIR ?=
# Real programs for corpus-check, built from Debian's source packages: ninja protoc sqlite-g python llc ...
CORPUS ?= ninja
# What programs of this machine do in corpus-check, folded with their libraries; system-check does all of it.
SYSTEM_JOBS ?= bash text python git sqlite
# What lies here gdb reads when it starts (Debian: /etc/gdb/gdbinit.d); empty: it is not told of the plug-in.
GDBINIT_DIR ?= $(if $(filter /usr /usr/local,$(PREFIX)),$(shell gdb --configuration 2>/dev/null | sed -n 's/.*--with-system-gdbinit-dir=\([^ ]*\).*/\1/p'))
CC = gcc
BUILD ?= build
CFLAGS ?= -O2 -g
WARN = -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wno-missing-field-initializers
ALL_CFLAGS = -std=gnu17 -D_GNU_SOURCE -I. $(WARN) $(CFLAGS)
VERSION = $(shell sed -n 's/.*ICF_VERSION "\(.*\)"/\1/p' icf/cli/version.h)
LIBS = -ldw -lelf -lxxhash -lz -lzstd -l:libiberty.a -lpthread -ldl
TEST_LIBS = -lcmocka

SRC = $(filter-out icf/lib/%,$(wildcard $(foreach d,elfrw dwarf icf,$d/*.c $d/*/*.c $d/*/*/*.c)))
# The library reads and writes nothing.
LIB_SRC = $(filter-out dwarf/rewrite/%,$(filter elfrw/% dwarf/%,$(SRC))) icf/lib/icfold.c
LIB_OBJ = $(LIB_SRC:%.c=$(BUILD)/pic/%.o)
LIB_DIR ?= $(PREFIX)/lib
OBJ = $(SRC:%.c=$(BUILD)/%.o)
LIBOBJ = $(filter-out $(BUILD)/icf/cmd/main.o,$(OBJ))
TESTS = $(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/*/*.c))
JUDGE = $(BUILD)/tests/judge_dwarf $(BUILD)/tests/mutate $(BUILD)/tests/replay
FUZZERS = $(filter-out fuzz limit replay,$(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/*.c)))
FUZZ_CC ?= $(firstword $(shell command -v clang-19 clang-14 clang) clang)
FUZZ_SECONDS ?= 60

all: $(BUILD)/icfold ## build/icfold

$(BUILD)/icfold: $(OBJ)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(OBJ) $(LIBS)

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# The library: what is not in its header stays inside, in the static one as well.
lib: $(BUILD)/libicfold.so.1 $(BUILD)/libicfold.a ## the library: build/libicfold.so.1 and build/libicfold.a
$(BUILD)/pic/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -fPIC -fvisibility=hidden -ffunction-sections -MMD -MP -c -o $@ $<
$(BUILD)/libicfold.so.1: $(LIB_OBJ) icf/lib/icfold.map
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libicfold.so.1,--version-script,icf/lib/icfold.map,--no-undefined,--gc-sections,--exclude-libs,ALL \
		-o $@ $(LIB_OBJ) -lz -lzstd -l:libiberty.a -lpthread -ldl
$(BUILD)/libicfold.a: $(LIB_OBJ)
	$(shell $(CC) -print-prog-name=ld) -r -o $(BUILD)/pic/icfold.o $(LIB_OBJ) $(shell $(CC) -print-file-name=libiberty.a)
	$(shell $(CC) -print-prog-name=objcopy) -w -G 'icfold_*' $(BUILD)/pic/icfold.o
	rm -f $@ && ar rcs $@ $(BUILD)/pic/icfold.o

# It takes in the parts of the page as they are.
$(BUILD)/icf/audit/page.o: $(wildcard icf/audit/page/*)

$(BUILD)/tests/unit/%: tests/unit/%.c $(LIBOBJ)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP $(LDFLAGS) $(WRAP) -o $@ $< $(LIBOBJ) $(LIBS) $(TEST_LIBS)

# Its machine is one that the program does not know.
$(BUILD)/tests/unit/icf/arch $(BUILD)/tests/unit/icf/arch_pair: WRAP = -Wl,--wrap=elfrw_arch_find

# Its allocations fail, one after the other.
$(BUILD)/tests/unit/dwarf/demangle: WRAP = -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc

$(BUILD)/tests/mutate: $(wildcard tests/mutate/mutate.[ch] tests/mutate/a64.c tests/mutate/code.c tests/mutate/debug.c tests/mutate/find.c tests/mutate/shape.c) $(LIBOBJ)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(filter %.c,$^) $(LIBOBJ) $(LIBS)

# Shares no code with the program: libdw reads both files.
$(BUILD)/tests/judge_dwarf: $(wildcard tests/judges/dwarf/*.[ch])
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(filter %.c,$^) -ldw -lelf

$(BUILD)/check_decoder: $(wildcard tests/judges/decoder.c tests/judges/effect.[ch] elfrw/arch/x86_64_decode.* elfrw/arch/x86_64_effect.* elfrw/arch/*.inc elfrw/arch/*.h)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(filter %.c,$^) -lZydis

$(BUILD)/check_a64: $(wildcard tests/judges/a64*.[ch] elfrw/arch/aarch64_*.[ch] elfrw/arch/*.h)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(filter %.c,$^)

# The harnesses of tests/fuzz: all in one plain program, each under a name of its own; or one program each, with libFuzzer.
$(BUILD)/tests/fuzz/%.o: tests/fuzz/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -DLLVMFuzzerTestOneInput=fuzz_$* -MMD -MP -c -o $@ $<
$(BUILD)/tests/replay: $(patsubst %,$(BUILD)/tests/fuzz/%.o,fuzz limit replay $(FUZZERS)) $(BUILD)/icf/lib/icfold.o $(LIBOBJ)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/fuzz/%: tests/fuzz/%.c tests/fuzz/fuzz.c tests/fuzz/limit.c tests/fuzz/fuzz.h $(BUILD)/icf/lib/icfold.o $(LIBOBJ)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -DLLVMFuzzerTestOneInput=fuzz_$* -DFUZZ_ONE=fuzz_$* $(LDFLAGS) -fsanitize=fuzzer -o $@ $(filter %.c %.o,$^) $(LIBS)
fuzzers: $(FUZZERS:%=$(BUILD)/fuzz/%)

# The targets that a user calls, with what stands behind ## in their lines.
help: ## this list
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/\1\t\2/p' Makefile | sort | while IFS="$$(printf '\t')" read -r t h; do printf '%-15s %s\n' "$$t" "$$h"; done

deps: ## install the packages that the build needs
	@sh tests/deps.sh build
deps-check:
	@sh tests/deps.sh check

demo: deps ## build, fold an example, run both; ARCH=aarch64: an example for that machine
	@[ -z "$(ARCH)" ] || sh tests/deps.sh $(ARCH)
	@$(MAKE) --no-print-directory -j$$(nproc) all
	@TARGET=$(ARCH) bash tests/demo.sh

check: deps-check ## all tests of every day
	@$(MAKE) --no-print-directory -j$$(nproc) all lib $(TESTS) $(JUDGE)
	@bash tests/check.sh

# All of what `check` runs a share of, and more; it says at the start how long it takes.
check-long: deps-check ## the full tests of which check runs a share: three hours; PARTS="faults matrix": some
	@$(MAKE) --no-print-directory -j$$(nproc) all lib $(TESTS) $(JUDGE)
	@BUILD=$(BUILD) bash tests/long.sh

# The same tests over a build that stops at the first invalid access or undefined operation.
sanitize: deps-check ## the tests of check with AddressSanitizer and UBSan
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=$(BUILD)-san CFLAGS="-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all" \
		all $(patsubst $(BUILD)/%,$(BUILD)-san/%,$(TESTS) $(JUDGE))
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=$(BUILD)-san lib # as users have it
	@PLACES=1 FILES=1 BUILD=$(BUILD)-san bash tests/check.sh

# Every reader under libFuzzer with sanitizers, FUZZ_SECONDS each; FUZZ="info line" runs some.  (NULL + 0 is no fault.)
FUZZ_SAN = address,undefined -fno-sanitize=pointer-overflow -fno-sanitize-recover=all
fuzz: deps-check ## every reader under libFuzzer; FUZZ_SECONDS=60 each, FUZZ="info line": some
	@if echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n); int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return !d && n; }' | \
		$(FUZZ_CC) -x c -fsanitize=fuzzer,address -o /dev/null - 2>/dev/null; then \
		$(MAKE) --no-print-directory -s -j$$(nproc) BUILD=$(BUILD)-fuzz CC=$(FUZZ_CC) \
			CFLAGS="-O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,$(FUZZ_SAN)" $(BUILD)-fuzz/icfold $(BUILD)-fuzz/tests/replay fuzzers; \
	else \
		echo "fuzz: $(FUZZ_CC) has no libFuzzer: random changes without feedback"; \
		$(MAKE) --no-print-directory -s -j$$(nproc) BUILD=$(BUILD)-fuzz CFLAGS="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all" \
			$(BUILD)-fuzz/icfold $(BUILD)-fuzz/tests/replay; \
	fi
	@FUZZ_SECONDS=$(FUZZ_SECONDS) bash tests/fuzz/run.sh $(BUILD)-fuzz $(FUZZ)

# The form of all C files is .clang-format's (Debian: clang-format, version 14).
format: ## form all C files by clang-format 14
	@git ls-files 'elfrw/*.[ch]' 'dwarf/*.[ch]' 'icf/*.[ch]' 'tests/*.[ch]' | xargs clang-format -i
lint: all ## the habits of CONTRIBUTING.md, as far as a program can check them
	@bash tests/lint.sh
# How time and memory grow with what a file has of anything, to eight times as much: half an hour.  ONLY="chains units/verify" runs some.
growth: all ## time and memory for n to 8n of everything; ONLY="chains units/verify": some
	@bash tests/growth/growth.sh $(ONLY)
bench: all ## time, memory and savings: the README's figures
	@bash tests/bench/bench.sh
	@bash tests/bench/linkers.sh
	@bash tests/bench/unused.sh
	@python3 tests/bench/goals.py
	@python3 tests/bench/server.py
	@bash tests/bench/aarch64.sh

bench-jobs: all ## whether folded programs are slower at work
	@python3 tests/bench/jobs.py
corpus-check: all $(JUDGE) ## real programs, folded and put to work; CORPUS="ninja protoc", SYSTEM_JOBS="bash git"
	@bash tests/suites/real/corpus.sh $(CORPUS) && bash tests/suites/debug/debug.sh $(CORPUS) && bash tests/suites/tool/size.sh $(CORPUS) && \
		bash tests/suites/real/corpus_stack.sh $(CORPUS) && bash tests/judges/agree_symbolize.sh $$(bash tests/corpus.sh $(CORPUS)) && \
		bash tests/suites/real/system_jobs.sh $(SYSTEM_JOBS)
# All programs and libraries of this machine, folded and verified; EVERY=N takes each Nth.  Some of them then do real work.
system-check: all ## all programs and libraries of this machine; EVERY=20: each 20th file
	@SYSTEM=full bash tests/suites/real/system.sh
	@bash tests/suites/real/system_jobs.sh
	@bash tests/suites/real/system_apps.sh
# Installs the large programs that system-check puts to work (2 GB).
system-install: ## the large programs that system-check puts to work
	@bash tests/suites/real/system_apps.sh --install
# Linkers' own tests of identical code folding, from LLVM's source package.
llvm-icf: all ## lld's and BOLT's tests of identical code folding
	@bash tests/torture/llvm_icf.sh
# Other people's test suites (GCC's, libstdc++'s, glibc's, csmith), folded: hours.  SUITES="execute g++.dg" runs some, SHARE=1/20 a part.
torture: all ## the test suites of GCC, libstdc++ and glibc; SHARE=1/20, SUITES="execute"
	@bash tests/torture/torture.sh $(SUITES)
check-decoder: $(BUILD)/check_decoder ## the instruction decoder against Zydis
	@bash tests/judges/decoder.sh $(BUILD)/check_decoder
# The AArch64 decoder, over 1.1 GB of Debian's packages, which are fetched once; ARM64=DIR has them.
check-decoder-arm: $(BUILD)/check_a64 ## the AArch64 decoder against GNU binutils and LLVM
	@bash tests/judges/a64.sh $(BUILD)/check_a64

# Where everything goes, for the shell.
TO = '$(DESTDIR)$(PREFIX)'
install: all lib ## PREFIX=/usr/local DESTDIR=
	for d in bin include share/man/man1 share/man/man3 share/man/man5 share/man/man7 share/cmake/icfold share/bash-completion/completions \
		share/zsh/site-functions share/fish/vendor_completions.d share/icfold libexec/icfold; do install -d $(TO)/$$d || exit 1; done
	install -m 755 $(BUILD)/icfold $(TO)/bin/icfold
	install -m 644 $(wildcard man/*.1) $(TO)/share/man/man1
	install -m 644 $(wildcard man/*.3) $(TO)/share/man/man3
	install -m 644 $(wildcard man/*.5) $(TO)/share/man/man5
	install -m 644 $(wildcard man/*.7) $(TO)/share/man/man7
	for f in icfold-gdb.py icfold_lldb.py; do \
		sed 's#^PROGRAM = .*#PROGRAM = "$(PREFIX)/bin/icfold"#' gdb/$$f >$(TO)/share/icfold/$$f && chmod 644 $(TO)/share/icfold/$$f || exit 1; done
	@dir='$(GDBINIT_DIR)'; plugin='$(PREFIX)/share/icfold/icfold-gdb.py'; to='$(DESTDIR)'; \
	if [ -n "$$dir" ] && { [ -n "$$to" ] || { install -d "$$dir" 2>/dev/null && [ -w "$$dir" ]; }; }; then \
		install -d "$$to$$dir" && printf 'import os\nif os.path.exists("%s"):\n    gdb.execute("source %s")\n' "$$plugin" "$$plugin" >"$$to$$dir/icfold.py" && chmod 644 "$$to$$dir/icfold.py"; \
	else \
		echo "gdb loads the plug-in with: source $$plugin (always, if gdb is there when \`make install\` runs with prefix /usr or /usr/local)"; \
	fi
	install -m 644 integration/cmake/icfold.cmake integration/cmake/icfoldConfig.cmake $(TO)/share/cmake/icfold
	sed 's/@VERSION@/$(VERSION)/' integration/cmake/icfoldConfigVersion.cmake.in >$(TO)/share/cmake/icfold/icfoldConfigVersion.cmake
	chmod 644 $(TO)/share/cmake/icfold/icfoldConfigVersion.cmake
	install -m 644 completions/icfold.bash $(TO)/share/bash-completion/completions/icfold
	install -m 644 completions/_icfold $(TO)/share/zsh/site-functions/_icfold
	install -m 644 completions/icfold.fish $(TO)/share/fish/vendor_completions.d/icfold.fish
	for f in wrapper/ld packaging/fold-tree coredump/icfold-coredump; do \
		sed 's|^icfold=icfold$$|icfold="$(PREFIX)/bin/icfold"|' integration/$$f >$(TO)/libexec/icfold/$${f#*/} && \
		chmod 755 $(TO)/libexec/icfold/$${f#*/} || exit 1; \
	done
	for name in bfd gold lld mold; do ln -sf ld $(TO)/libexec/icfold/ld.$$name || exit 1; done
	install -d '$(DESTDIR)$(LIB_DIR)/pkgconfig'
	install -m 644 icf/lib/icfold.h $(TO)/include/icfold.h
	install -m 644 $(BUILD)/libicfold.so.1 $(BUILD)/libicfold.a '$(DESTDIR)$(LIB_DIR)'
	ln -sf libicfold.so.1 '$(DESTDIR)$(LIB_DIR)/libicfold.so'
	sed 's#@PREFIX@#$(PREFIX)#; s#@LIBDIR@#$(subst $(PREFIX)/,$${prefix}/,$(LIB_DIR))#; s#@VERSION@#$(VERSION)#' icf/lib/icfold.pc.in >'$(DESTDIR)$(LIB_DIR)/pkgconfig/icfold.pc'
	sed 's#^LIBRARY = .*#LIBRARY = "$(LIB_DIR)/libicfold.so.1"#' icf/lib/icfold.py >$(TO)/share/icfold/icfold.py
	chmod 644 '$(DESTDIR)$(LIB_DIR)/pkgconfig/icfold.pc' $(TO)/share/icfold/icfold.py

# What install would write, wherever that is.
uninstall: all lib ## remove what install has written; the same PREFIX and DESTDIR
	@t=$$(mktemp -d) && $(MAKE) --no-print-directory -s install DESTDIR="$$t" >/dev/null && (cd "$$t" && find . ! -type d) | while read -r f; do rm -f '$(DESTDIR)'"/$$f"; done; \
		rm -rf "$$t"; rmdir $(TO)/share/icfold $(TO)/share/cmake/icfold $(TO)/libexec/icfold 2>/dev/null || true

# The same commit gives the same bytes.
dist: ## build/icfold-VERSION.tar.xz, of the last commit
	@mkdir -p $(BUILD)
	git archive --prefix=icfold-$(VERSION)/ HEAD | xz -9 >$(BUILD)/icfold-$(VERSION).tar.xz

clean: ## remove what was built
	rm -rf build build-san build-fuzz

-include $(OBJ:.o=.d) $(LIB_OBJ:.o=.d) $(TESTS:=.d) $(wildcard $(BUILD)/tests/fuzz/*.d)
.PHONY: all lib dist uninstall help clean format deps deps-check demo check check-long sanitize fuzz fuzzers lint growth bench bench-jobs corpus-check system-check system-install torture llvm-icf check-decoder check-decoder-arm install
