/* hash_rows.c: are functions with one hash the same?  For very many rows of `icfold audit --rows`.
 * Shares no code with icfold; instructions are decoded by Zydis, those of AArch64 by hand.
 *
 *   hash_rows KEYS <ROWS.jsonl     appends to KEYS the hash of each row and a key of its function
 *   hash_rows --compare KEYS       compares all keys of equal hashes; status 1: some differ
 *
 * For a whole machine: icfold audit -q --rows=/dev/stdout /usr/bin /usr/lib | hash_rows KEYS
 *
 * A key is a hash of all bytes of the function, with each field that counts from a place replaced
 * by what it names: code of the function itself by distance, functions by their rows' hashes,
 * imports by name, constants by what a load reads or by their text, variables only as such.  A load
 * from a slot that holds an address counts as that address, as linkers may rewrite it.  On AArch64,
 * registers that hold pages are followed on all ways through the function; where only a jump table
 * or an exception leads, an offset that may belong to a page does not count. */
#include <Zydis/Zydis.h>
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

struct row {
	uint64_t address, size;
	uint8_t hash[16];
};

struct slot {
	uint64_t place, to;
	const char *name; /* of the import, or NULL: TO is there */
};

struct record {
	uint8_t hash[16], key[16];
	uint32_t file, at; /* for the report: index of the file; low half of the address */
};

struct program {
	char path[4096];
	const uint8_t *base;
	size_t size;
	const Elf64_Shdr *sh;
	unsigned n_sh;
	const char *names;
	uint16_t machine;
	struct slot *slot;
	size_t n_slots;
	struct row *row;
	size_t n_rows, room;
	uint32_t index;
};

static int slot_order(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;
	return x->place < y->place ? -1 : x->place > y->place;
}

static int row_order(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	return x->address < y->address ? -1 : x->address > y->address;
}

static bool in_file(const struct program *p, uint64_t off, uint64_t size)
{
	return off <= p->size && size <= p->size - off;
}

static const Elf64_Shdr *section_at(const struct program *p, uint64_t va)
{
	for (unsigned i = 1; i < p->n_sh; i++)
		if ((p->sh[i].sh_flags & SHF_ALLOC) && !(p->sh[i].sh_flags & SHF_TLS) &&
		    va - p->sh[i].sh_addr < p->sh[i].sh_size)
			return &p->sh[i];
	return NULL;
}

static const char *name_of(const struct program *p, const Elf64_Shdr *s)
{
	return p->names + s->sh_name;
}

/* The bytes at VA, and how many there are. */
static const uint8_t *bytes_at(const struct program *p, uint64_t va, uint64_t *n)
{
	const Elf64_Shdr *s = section_at(p, va);
	*n = 0;
	if (!s || s->sh_type == SHT_NOBITS || !in_file(p, s->sh_offset, s->sh_size))
		return NULL;
	*n = s->sh_size - (va - s->sh_addr);
	return p->base + s->sh_offset + (va - s->sh_addr);
}

static const struct slot *slot_at(const struct program *p, uint64_t va)
{
	struct slot key = { .place = va };
	return p->n_slots ? bsearch(&key, p->slot, p->n_slots, sizeof key, slot_order) : NULL;
}

static void add_slot(struct program *p, struct slot s)
{
	if ((p->n_slots & (p->n_slots + 1)) == 0)
		p->slot = realloc(p->slot, (2 * p->n_slots + 2) * sizeof *p->slot);
	p->slot[p->n_slots++] = s;
}

static void add_relative(struct program *p, uint64_t place)
{
	uint64_t n, to = 0;
	const uint8_t *b = bytes_at(p, place, &n);
	if (b && n >= sizeof to)
		memcpy(&to, b, sizeof to);
	add_slot(p, (struct slot){ place, to, NULL });
}

/* Relative relocations in the short form (gABI, SHT_RELR): an address, and then bits for the 63
 * words behind it. */
static void read_relr(struct program *p, const Elf64_Shdr *s)
{
	uint64_t at = 0, word;
	for (uint64_t k = 0; k + sizeof word <= s->sh_size; k += sizeof word) {
		memcpy(&word, p->base + s->sh_offset + k, sizeof word);
		if (word & 1) {
			for (unsigned b = 0; b < 63; b++)
				if (word >> (b + 1) & 1)
					add_relative(p, at + 8 * b);
			at += 63 * sizeof word;
		} else {
			add_relative(p, word);
			at = word + sizeof word;
		}
	}
}

/* With fixed addresses, slots of the GOT need no relocation. */
static void read_fixed_slots(struct program *p)
{
	const size_t n_known = p->n_slots;
	for (unsigned i = 1; i < p->n_sh; i++) {
		const Elf64_Shdr *s = &p->sh[i];
		uint64_t to;
		if (strncmp(name_of(p, s), ".got", 4) != 0 || s->sh_type != SHT_PROGBITS ||
		    !in_file(p, s->sh_offset, s->sh_size))
			continue;
		for (uint64_t k = 0; k + sizeof to <= s->sh_size; k += sizeof to) {
			struct slot t = { s->sh_addr + k, 0, NULL };
			memcpy(&t.to, p->base + s->sh_offset + k, sizeof t.to);
			if (t.to && section_at(p, t.to) &&
			    !(n_known && bsearch(&t, p->slot, n_known, sizeof t, slot_order)))
				add_slot(p, t);
		}
	}
	if (p->n_slots > n_known)
		qsort(p->slot, p->n_slots, sizeof *p->slot, slot_order);
}

static void read_slots(struct program *p)
{
	for (unsigned i = 1; i < p->n_sh; i++) {
		const Elf64_Shdr *s = &p->sh[i];
		if (s->sh_type == SHT_RELR && in_file(p, s->sh_offset, s->sh_size))
			read_relr(p, s);
		if (s->sh_type != SHT_RELA || !(s->sh_flags & SHF_ALLOC) ||
		    !in_file(p, s->sh_offset, s->sh_size))
			continue;
		const Elf64_Shdr *sym = s->sh_link < p->n_sh ? &p->sh[s->sh_link] : NULL;
		const Elf64_Shdr *str = sym && sym->sh_link < p->n_sh ? &p->sh[sym->sh_link] : NULL;
		size_t n = s->sh_size / sizeof(Elf64_Rela);
		for (size_t k = 0; k < n; k++) {
			Elf64_Rela r;
			Elf64_Sym y;
			memcpy(&r, p->base + s->sh_offset + k * sizeof r, sizeof r);
			struct slot t = { r.r_offset, (uint64_t)r.r_addend, NULL };
			uint64_t at = ELF64_R_SYM(r.r_info) * sizeof y;
			if (at && sym && str && in_file(p, sym->sh_offset + at, sizeof y)) {
				memcpy(&y, p->base + sym->sh_offset + at, sizeof y);
				if (y.st_name < str->sh_size &&
				    in_file(p, str->sh_offset, str->sh_size))
					t.name = (const char *)p->base + str->sh_offset + y.st_name;
			}
			add_slot(p, t);
		}
	}
	if (p->n_slots)
		qsort(p->slot, p->n_slots, sizeof *p->slot, slot_order);
	if (((const Elf64_Ehdr *)p->base)->e_type == ET_EXEC)
		read_fixed_slots(p);
}

/* ---- keys ---- */

struct key {
	const struct program *p;
	const struct row *f;
	XXH3_state_t *state;
};

static void put(struct key *k, const void *p, size_t n)
{
	XXH3_128bits_update(k->state, p, n);
}

static void put_tag(struct key *k, char tag, uint64_t n)
{
	uint64_t v[2] = { (uint64_t)(uint8_t)tag, n };
	put(k, v, sizeof v);
}

static void put_name(struct key *k, const char *name)
{
	put_tag(k, 'I', 0);
	put(k, name, strlen(name) + 1);
}

/* The slot of the stub at VA, or NULL. */
static const struct slot *stub(const struct program *p, uint64_t va)
{
	uint64_t n;
	const uint8_t *c = bytes_at(p, va, &n);
	uint32_t w, v;
	int32_t d;
	if (p->machine == EM_AARCH64) {
		for (unsigned i = 0; c && i + 8 <= n && i < 12; i += 4) {
			memcpy(&w, c + i, 4);
			memcpy(&v, c + i + 4, 4);
			if ((w & 0x9f00001f) != 0x90000010 || (v & 0xffc003ff) != 0xf9400211)
				continue;
			int64_t page = (int64_t)(((uint64_t)(w >> 5 & 0x7ffff) << 2 | (w >> 29 & 3))
						 << 43) >>
				       31;
			return slot_at(p, ((va + i) & ~(uint64_t)4095) + (uint64_t)page +
						  (v >> 10 & 4095) * 8);
		}
		return NULL;
	}
	for (unsigned i = 0; c && i + 6 <= n && i < 8; i++)
		if (c[i] == 0xff && c[i + 1] == 0x25) {
			memcpy(&d, c + i + 2, 4);
			return slot_at(p, va + i + 6 + (uint64_t)(int64_t)d);
		}
	return NULL;
}

static void put_code(struct key *k, uint64_t to, const Elf64_Shdr *s)
{
	const struct program *p = k->p;
	size_t lo = 0, hi = p->n_rows;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (p->row[mid].address <= to)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo && to - p->row[lo - 1].address < p->row[lo - 1].size) {
		put_tag(k, 'F', to - p->row[lo - 1].address);
		put(k, p->row[lo - 1].hash, 16);
		return;
	}
	const struct slot *t =
		strncmp(name_of(p, s), ".plt", 4) == 0 || strcmp(name_of(p, s), ".iplt") == 0
			? stub(p, to)
			: NULL;
	if (t && t->name)
		put_name(k, t->name);
	else
		put_tag(k, 'X', 0);
}

/* In a program with fixed addresses: do the N bytes at B begin with one? */
static bool holds_address(const struct program *p, const uint8_t *b, uint64_t n)
{
	uint64_t va = 0;
	if (((const Elf64_Ehdr *)p->base)->e_type == ET_EXEC && n >= sizeof va)
		memcpy(&va, b, sizeof va);
	return va && section_at(p, va);
}

/* Is VA where data ends?  Linkers differ in what follows. */
static bool ends_data(const struct program *p, uint64_t va)
{
	const Elf64_Shdr *s = NULL;
	for (unsigned d = 1; d <= 16 && !s; d++)
		s = section_at(p, va - d);
	return s && s->sh_flags & SHF_WRITE;
}

/* What the address TO of constants means, which are the N bytes at B. */
static void put_constants(struct key *k, uint64_t to, const uint8_t *b, uint64_t n)
{
	const struct program *p = k->p;
	uint64_t text = 0;
	while (text < n && ((b[text] >= 32 && b[text] < 127) || b[text] == '\n' || b[text] == '\t'))
		text++;
	unsigned own = 0; /* if it is a jump table: its first entry that leads into the function
			     itself */
	bool table = false;
	int32_t entry = 0;
	for (; own < 16 && 4 * own + 4 <= n && !table; own++) {
		memcpy(&entry, b + 4 * own, 4);
		uint64_t va = to + (uint64_t)(int64_t)entry;
		const Elf64_Shdr *s = section_at(p, va);
		table = entry && va - k->f->address < k->f->size;
		if (!entry || !s || !(s->sh_flags & SHF_EXECINSTR))
			break;
	}
	if (text > 3 && text < n && !b[text]) {
		put_tag(k, 'T', text);
		put(k, b, text);
	} else if (holds_address(p, b, n)) {
		put_tag(k, 'A', 0);
	} else if (table) {
		put_tag(k, 'J', own);
		put_tag(k, 'J', to + (uint64_t)(int64_t)entry - k->f->address);
	} else {
		put_tag(k, 'C', b[0]);
	}
}

/* What TO means.  READ: bytes that the instruction reads there; 0: it takes the address. */
static void put_meaning(struct key *k, uint64_t to, unsigned read)
{
	const struct program *p = k->p;
	const Elf64_Shdr *s = section_at(p, to);
	const struct slot *t = slot_at(p, to);
	uint64_t n;
	const uint8_t *b = bytes_at(p, to, &n);
	if (to - k->f->address < k->f->size) {
		put_tag(k, 'O', to - k->f->address);
	} else if (!s) {
		put_tag(k, ends_data(p, to) ? 'V' : 'N', 0);
	} else if (s->sh_flags & SHF_EXECINSTR) {
		put_code(k, to, s);
	} else if (strncmp(name_of(p, s), ".got", 4) == 0 && read) {
		if (t && t->name)
			put_name(k, t->name);
		else if (t && t->to && section_at(p, t->to) &&
			 strncmp(name_of(p, section_at(p, t->to)), ".got", 4) != 0)
			put_meaning(k, t->to, 0);
		else
			put_tag(k, 'S', 0);
	} else if (((s->sh_flags & SHF_WRITE) && strncmp(name_of(p, s), ".data.rel.ro", 12) != 0) ||
		   !b || s->sh_type != SHT_PROGBITS) {
		put_tag(k, 'V', 0);
	} else if (t) {
		/* The same as in a program with fixed addresses, below, where a function of another
		 * file has an address as well. */
		put_tag(k, 'A', 0);
	} else if (read >= 8 && (holds_address(p, b, n) ||
				 (read > 8 && n > 8 && holds_address(p, b + 8, n - 8)))) {
		put_tag(k, 'A', 0);
	} else if (read) {
		put_tag(k, 'B', 0);
		put(k, b, read < n ? read : n);
	} else {
		put_constants(k, to, b, n);
	}
}

static void key_x86(struct key *k, uint8_t *c, uint64_t size)
{
	static ZydisDecoder dec;
	ZydisDecodedInstruction z;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	if (!dec.machine_mode)
		ZydisDecoderInit(&dec, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (uint64_t i = 0; i < size; i += z.length) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&dec, c + i, size - i, &z, op))) {
			z.length = 1;
			put(k, c + i, 1);
			continue;
		}
		uint64_t next = k->f->address + i + z.length;
		bool rip = (z.attributes & ZYDIS_ATTRIB_HAS_MODRM) && z.raw.modrm.mod == 0 &&
			   z.raw.modrm.rm == 5;
		if (!rip && !z.raw.imm[0].is_relative) {
			put(k, c + i, z.length);
			continue;
		}
		unsigned at = rip ? z.raw.disp.offset : z.raw.imm[0].offset,
			 width = (rip ? z.raw.disp.size : z.raw.imm[0].size) / 8;
		uint64_t to = next + (uint64_t)(rip ? z.raw.disp.value : z.raw.imm[0].value.s);
		unsigned read = 0;
		for (unsigned o = 0; rip && o < z.operand_count_visible; o++)
			if (op[o].type == ZYDIS_OPERAND_TYPE_MEMORY &&
			    op[o].mem.type == ZYDIS_MEMOP_TYPE_MEM)
				read = op[o].size / 8;
		const Elf64_Shdr *s = section_at(k->p, to);
		const struct slot *t = slot_at(k->p, to);
		if (rip && z.mnemonic == ZYDIS_MNEMONIC_MOV && read == 8 && s &&
		    strncmp(name_of(k->p, s), ".got", 4) == 0 && t && !t->name)
			c[i + z.raw.modrm.offset - 1] = 0x8d;
		memset(c + i + at, 0, width);
		put(k, c + i, z.length);
		put_meaning(k, to, read);
	}
}

#include "hash_rows_a64.h"

static void key_a64(struct key *k, uint8_t *c, uint64_t size)
{
	uint64_t va = k->f->address, (*page)[32] = a64_pages(k->p, c, size / 4, va);
	for (uint64_t i = 0; i + 4 <= size; i += 4) {
		uint32_t w;
		memcpy(&w, c + i, 4);
		struct a64_ref r = a64_ref(w, va + i, page[i / 4]);
		const Elf64_Shdr *s = r.mask && r.to != MAYBE ? section_at(k->p, r.to) : NULL;
		const struct slot *t = s ? slot_at(k->p, r.to) : NULL;
		/* Linkers make an addition of a load from a slot that holds an address. */
		if ((w & 0xffc00000) == 0xf9400000 && t && !t->name &&
		    strncmp(name_of(k->p, s), ".got", 4) == 0)
			w = 0x91000000 | (w & 0x3ff);
		w &= is_adrp(w) ? 0x9f00001f : ~r.mask;
		put(k, &w, 4);
		if (r.to == MAYBE)
			put_tag(k, 'U', 0);
		else if (r.mask)
			put_meaning(k, r.to, r.read);
	}
	free(page);
}

static void key_of(const struct program *p, const struct row *f, struct record *ret)
{
	static XXH3_state_t *state;
	static uint8_t *code;
	static uint64_t room;
	uint64_t n;
	const uint8_t *c = bytes_at(p, f->address, &n);
	if (!state)
		state = XXH3_createState();
	struct key k = { p, f, state };
	XXH3_128bits_reset(state);
	put_tag(&k, 'L', f->size);
	if (c && f->size <= n) {
		if (f->size > room)
			code = realloc(code, room = f->size);
		memcpy(code, c, f->size);
		if (p->machine == EM_AARCH64)
			key_a64(&k, code, f->size);
		else
			key_x86(&k, code, f->size);
	} else {
		put_tag(&k, 'M', p->index + f->address);
	}
	XXH128_canonical_t key;
	XXH128_canonicalFromHash(&key, XXH3_128bits_digest(state));
	memcpy(ret->key, key.digest, 16);
	memcpy(ret->hash, f->hash, 16);
	ret->file = p->index;
	ret->at = (uint32_t)f->address;
}

static void finish(struct program *p, FILE *out)
{
	int fd = p->n_rows ? open(p->path, O_RDONLY) : -1;
	struct stat st;
	if (fd >= 0 && fstat(fd, &st) == 0) {
		p->size = (size_t)st.st_size;
		p->base = mmap(NULL, p->size, PROT_READ, MAP_PRIVATE, fd, 0);
		const Elf64_Ehdr *e = (const Elf64_Ehdr *)p->base;
		p->machine = e->e_machine;
		p->n_sh = e->e_shnum;
		p->sh = (const Elf64_Shdr *)(p->base + e->e_shoff);
		p->names = (const char *)p->base + p->sh[e->e_shstrndx].sh_offset;
		read_slots(p);
		qsort(p->row, p->n_rows, sizeof *p->row, row_order);
		for (size_t i = 0; i < p->n_rows; i++) {
			struct record r;
			key_of(p, &p->row[i], &r);
			fwrite(&r, sizeof r, 1, out);
		}
		munmap((void *)p->base, p->size);
	}
	if (fd >= 0)
		close(fd);
	free(p->slot);
	p->slot = NULL;
	p->n_slots = p->n_rows = 0;
}

static int make_keys(const char *keys)
{
	struct program p = { .index = 0 };
	char *line = NULL;
	size_t room = 0;
	FILE *out = fopen(keys, "ab");
	while (out && getline(&line, &room, stdin) > 0) {
		const char *a = strstr(line, "\"address\":"), *s = strstr(line, "\"size\":"),
			   *h = strstr(line, "\"hash\":\"");
		char *path = strstr(line, "\"file\":\""),
		     *end = path ? strchr(path + 8, '"') : NULL;
		if (!a || !s || !h || !end || end - path - 8 >= (long)sizeof p.path)
			continue;
		*end = '\0';
		if (strcmp(path + 8, p.path) != 0) {
			finish(&p, out);
			strcpy(p.path, path + 8);
			printf("%u %s\n", ++p.index, p.path);
		}
		if (p.n_rows == p.room)
			p.row = realloc(p.row, (p.room = p.room * 2 + 64) * sizeof *p.row);
		struct row *r = &p.row[p.n_rows++];
		*r = (struct row){ strtoull(a + 10, NULL, 10), strtoull(s + 7, NULL, 10), { 0 } };
		for (unsigned i = 0; i < 16; i++) {
			unsigned v = 0;
			sscanf(h + 8 + 2 * i, "%2x", &v);
			r->hash[i] = (uint8_t)v;
		}
	}
	finish(&p, out);
	return !out || fclose(out) != 0;
}

static int record_order(const void *a, const void *b)
{
	return memcmp(a, b, 32);
}

static int compare(const char *keys)
{
	FILE *f = fopen(keys, "rb");
	struct stat st;
	if (!f || fstat(fileno(f), &st) != 0)
		return 2;
	size_t n = (size_t)st.st_size / sizeof(struct record), hashes = 0, shared = 0, bad = 0;
	struct record *r = malloc((n + 1) * sizeof *r);
	if (!r || fread(r, sizeof *r, n, f) != n)
		return 2;
	qsort(r, n, sizeof *r, record_order);
	for (size_t i = 0; i < n; i++) {
		if (!i || memcmp(r[i].hash, r[i - 1].hash, 16) != 0) {
			hashes++;
			continue;
		}
		shared++;
		if (memcmp(r[i].key, r[i - 1].key, 16) == 0)
			continue;
		bad++;
		printf("differ: file %u %#x, file %u %#x\n", r[i - 1].file, r[i - 1].at, r[i].file,
		       r[i].at);
	}
	printf("%zu rows, %zu hashes, %zu rows with the hash of another, %zu differ\n", n, hashes,
	       shared, bad);
	return bad != 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--compare") == 0)
		return compare(argv[2]);
	return argc == 2 ? make_keys(argv[1]) : 2;
}
