# icfold: see README.md.  `make` builds build/icfold; `make demo` and `make check` install what they miss.
PREFIX ?= /usr/local
DESTDIR ?=
CC ?= gcc
BUILD ?= build
CFLAGS ?= -O2 -g
WARN = -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wno-missing-field-initializers
ALL_CFLAGS = -std=gnu17 -D_GNU_SOURCE -I. $(WARN) $(CFLAGS)
LIBS = -lxxhash -lz -lzstd -lpthread

SRC = $(wildcard elfrw/*.c dwarf/*.c icf/*.c)
OBJ = $(SRC:%.c=$(BUILD)/%.o)
LIBOBJ = $(filter-out $(BUILD)/icf/main.o,$(OBJ))
TESTS = $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/test_*.c))

all: $(BUILD)/icfold

$(BUILD)/icfold: $(OBJ)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(OBJ) $(LIBS)

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/tests/%: tests/%.c $(LIBOBJ)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP $(LDFLAGS) -o $@ $< $(LIBOBJ) $(LIBS) -lcmocka -ldw -lelf

-include $(OBJ:.o=.d) $(TESTS:=.d)
clean:
	rm -rf $(BUILD)
.PHONY: all clean
