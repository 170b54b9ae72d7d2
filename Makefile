# icfold: see README.md.  `make` builds build/icfold; `make demo` and `make check` install what they miss.
PREFIX ?= /usr/local
DESTDIR ?=
# Real programs for corpus-check, built from Debian's source packages: ninja protoc sqlite-g python llc ...
CORPUS ?= ninja
CC = gcc
BUILD ?= build
CFLAGS ?= -O2 -g
WARN = -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wno-missing-field-initializers
ALL_CFLAGS = -std=gnu17 -D_GNU_SOURCE -I. $(WARN) $(CFLAGS)
LIBS = -ldw -lelf -lxxhash -lz -lzstd -l:libiberty.a -lpthread
TEST_LIBS = -lcmocka

SRC = $(wildcard elfrw/*.c dwarf/*.c icf/*.c)
OBJ = $(SRC:%.c=$(BUILD)/%.o)
LIBOBJ = $(filter-out $(BUILD)/icf/main.o,$(OBJ))
TESTS = $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/test_*.c))
JUDGE = $(BUILD)/tests/judge_dwarf $(BUILD)/tests/mutate

all: $(BUILD)/icfold

$(BUILD)/icfold: $(OBJ)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(OBJ) $(LIBS)

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/tests/test_%: tests/test_%.c $(LIBOBJ)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP $(LDFLAGS) -o $@ $< $(LIBOBJ) $(LIBS) $(TEST_LIBS)

# Shares no code with the program: libdw reads both files.
$(BUILD)/tests/mutate: $(wildcard tests/mutate*.c tests/mutate*.h) $(LIBOBJ)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(filter %.c,$^) $(LIBOBJ) $(LIBS)

$(BUILD)/tests/judge_dwarf: $(wildcard tests/judge_*.c) tests/judge.h
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(filter %.c,$^) -ldw -lelf

$(BUILD)/check_decoder: tests/check_decoder.c elfrw/x86_decode.c elfrw/x86_decode.h elfrw/x86_tables.inc elfrw/arch.h
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(filter %.c,$^) -lZydis

deps:
	@sh tests/deps.sh build
deps-check:
	@sh tests/deps.sh check

demo: deps
	@$(MAKE) --no-print-directory -j$$(nproc) all
	@bash tests/demo.sh

check: deps-check
	@$(MAKE) --no-print-directory -j$$(nproc) all $(TESTS) $(JUDGE)
	@bash tests/check.sh

# The same tests over a build that stops at the first invalid access or undefined operation.
sanitize: deps-check
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=$(BUILD)-san CFLAGS="-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all" \
		all $(BUILD)-san/tests $(patsubst $(BUILD)/%,$(BUILD)-san/%,$(TESTS) $(JUDGE))
	@BUILD=$(BUILD)-san bash tests/check.sh
$(BUILD)-san/tests:
	@mkdir -p $@

lint: all
	@bash tests/lint.sh
bench: all
	@bash tests/bench.sh
corpus-check: all $(JUDGE)
	@bash tests/run_corpus.sh $(CORPUS) && bash tests/run_debug.sh $(CORPUS) && bash tests/run_size.sh $(CORPUS)
check-decoder: $(BUILD)/check_decoder
	@bash tests/check_decoder.sh $(BUILD)/check_decoder

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/man/man5
	install -m 755 $(BUILD)/icfold $(DESTDIR)$(PREFIX)/bin/icfold
	install -m 644 $(wildcard man/*.1) $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 644 $(wildcard man/*.5) $(DESTDIR)$(PREFIX)/share/man/man5

clean:
	rm -rf build build-san

-include $(OBJ:.o=.d) $(TESTS:=.d)
.PHONY: all clean deps deps-check demo check sanitize lint bench corpus-check check-decoder install
