#!/bin/bash
# archives.sh: --gc-functions with whole static libraries of this machine, most of whose functions a program does not use.
#
# They have what small programs lack: hand-written assembler that chooses code by the processor (OpenSSL, GMP, libgcrypt), an
# interpreter with computed jumps, and the start-up code and the resolvers of the C library.  A library that is not there is
# skipped.  Two are a share for every change; ARCHIVES=full has them all, and every form of folding.
# shellcheck source=tests/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib.sh"
start_suite archives gcc

cat >crypto.c <<'C'
#include <openssl/evp.h>
#include <stdio.h>
int main(void)
{
	static const char *const digest[] = { "SHA1", "SHA256", "SHA512", "SHA3-256", "MD5", "BLAKE2B512", "SM3" };
	static const char *const cipher[] = { "AES-128-CBC", "AES-256-GCM", "AES-128-XTS", "CHACHA20-POLY1305", "CAMELLIA-256-CBC" };
	static unsigned char in[999], key[64] = { 1, 2, 3 }, iv[32] = { 4, 5 }, out[2000];
	unsigned n;
	for (unsigned i = 0; i < sizeof in; i++) in[i] = (unsigned char)(i * 7);
	for (unsigned i = 0; i < sizeof digest / sizeof *digest; i++)
		if (EVP_Digest(in, sizeof in, out, &n, EVP_MD_fetch(NULL, digest[i], NULL), NULL)) printf("%s %02x%02x\n", digest[i], out[0], out[n - 1]);
	for (unsigned i = 0; i < sizeof cipher / sizeof *cipher; i++) {
		EVP_CIPHER_CTX *x = EVP_CIPHER_CTX_new();
		int a = 0, b = 0;
		if (!EVP_EncryptInit_ex(x, EVP_CIPHER_fetch(NULL, cipher[i], NULL), NULL, key, iv)) continue;
		EVP_EncryptUpdate(x, out, &a, in, sizeof in);
		EVP_EncryptFinal_ex(x, out + a, &b);
		printf("%s %d %02x%02x\n", cipher[i], a + b, out[0], out[a + b - 1]);
	}
	EVP_PKEY *key2 = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)1024);
	printf("%d\n", key2 != NULL);
	return 0;
}
C
cat >gmp.c <<'C'
#include <gmp.h>
int main(void)
{
	mpz_t a, b, c;
	mpf_t f;
	mpz_inits(a, b, c, NULL);
	mpz_fac_ui(a, 2000);
	mpz_ui_pow_ui(b, 7, 3000);
	mpz_mul(c, a, b);
	gmp_printf("%lu %zu\n", mpz_fdiv_ui(c, 1000003), mpz_sizeinbase(c, 10));
	mpz_nextprime(b, b);
	mpz_powm(c, a, c, b);
	gmp_printf("%lu\n", mpz_fdiv_ui(c, 1000003));
	mpf_init2(f, 500);
	mpf_sqrt_ui(f, 2);
	gmp_printf("%.100Ff\n", f);
	return 0;
}
C
cat >gcrypt.c <<'C'
#include <gcrypt.h>
#include <stdio.h>
int main(void)
{
	unsigned char out[64];
	gcry_check_version(NULL);
	gcry_control(GCRYCTL_INITIALIZATION_FINISHED, 0);
	for (int i = 1; i < 400; i++) {
		unsigned n = gcry_md_test_algo(i) ? 0 : gcry_md_get_algo_dlen(i);
		if (!n || n > sizeof out) continue;
		gcry_md_hash_buffer(i, out, "what nobody uses", 16);
		printf("%d %02x%02x\n", i, out[0], out[n - 1]);
	}
	return gcry_control(GCRYCTL_SELFTEST) != 0;
}
C
cat >tcl.c <<'C'
#include <tcl.h>
static int init(Tcl_Interp *in) { return Tcl_Init(in); }
int main(int argc, char **argv) { Tcl_Main(argc, argv, init); }
C
cat >in.tcl <<'T'
puts [lsort -integer {5 3 9 1}]; puts [regsub -all {(\w)(\w)} "abcd" {\2\1}]
oo::class create A { method f x { return [expr {$x ** 30}] } }; puts [[A new] f 7]
coroutine c apply {{} { yield 1; yield 2; return 3 }}; puts [c][c]
puts [format %08.3f 3.14159]; puts [clock format 0 -gmt 1 -format %Y]; puts [catch {error boo} m]$m
try { throw X y } trap X e { puts $e }; puts [binary encode hex [zlib compress hello]]; interp create q; puts [q eval {expr 1+1}]
T
cat >python.c <<'C'
#include <Python.h>
int main(int argc, char **argv) { return Py_BytesMain(argc, argv); }
C
cat >in.py <<'P'
import collections, dataclasses, json, re
@dataclasses.dataclass
class A:
    x: int
print(A(3), json.dumps({"a": [1, 2.5, None]}), re.sub(r"(\w+)", r"<\1>", "ab cd"), collections.Counter("abca"))
def g():
    try:
        print((yield 1))
    finally:
        print("end")
h = g(); next(h)
try: h.send(5)
except StopIteration: pass
try: 1 / 0
except ZeroDivisionError as e: print(repr(e))
print(int("123456789" * 20) ** 3 % 1000007, "é".encode(), pow(3, -1, 7), f"{3.14159:8.3f}", complex(1, 2) ** 2)
P

# one NAME LIBRARY "LINKOPTIONS" "OTHERS" [ARGUMENT...]: NAME.c with all of LIBRARY.
one() {
	local name=$1 lib=$2 how=$3 libs=$4 modes=(safe) mode as bad='' gone
	shift 4
	[[ ${ARCHIVES:-} = full || $name =~ ^(gmp-static|gcrypt)$ ]] || return
	rm -f out list
	# shellcheck disable=SC2086
	if ! gcc -w -O1 $how "${name%%-*}.c" -Wl,--whole-archive "$lib" -Wl,--no-whole-archive $libs -Wl,--emit-relocs -o "$name" 2>"$name.log"; then
		skip "archives/$name" "does not build: $(first_line "$name.log")"
		return
	fi
	timeout 300 "./$name" "$@" >want 2>&1 </dev/null || { skip "archives/$name" "the program itself fails"; return; }
	[ "${ARCHIVES:-}" = full ] && modes+=("safe --in-place" none all)
	for mode in "${modes[@]}"; do
		as=--icf=safe
		[ "$mode" = all ] && as=--icf=all
		# shellcheck disable=SC2086
		"$ICFOLD" -q --gc-functions --icf=$mode --print-gc-functions=list "$name" -o out 2>log || { bad="$bad $mode: $(first_line log);"; continue; }
		timeout 300 ./out "$@" >got 2>&1 </dev/null || bad="$bad $mode: exit status $?;"
		cmp -s want got || bad="$bad $mode: prints $(diff want got | sed -n 2p | cut -c 1-100);"
		"$ICFOLD" verify --gc-functions $as "$name" out >log 2>&1 || bad="$bad $mode: verify: $(grep -v '^symbolized' log | grep -m1 ': ' | cut -c 1-160);"
	done
	gone=$(wc -l <list)
	[ "$gone" -gt 50 ] || bad="$bad only $gone functions are removed;"
	check "archives/$name" "$bad" test -z "$bad"
	rm -f "$name" out
}
export OPENSSL_CONF=/dev/null
one crypto -l:libcrypto.a "" "-lz -ldl -lpthread"
# Other code for a processor that has less.
OPENSSL_ia32cap=0:0 one crypto-plain -l:libcrypto.a "-static" "-lz -ldl -lpthread"
one gmp -l:libgmp.a "" ""
one gmp-static -l:libgmp.a "-static" ""
one gcrypt -l:libgcrypt.a "" "-lgpg-error"
one tcl -l:libtcl8.6.a "-I/usr/include/tcl8.6" "-lz -lm -ldl -lpthread" in.tcl
version=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
python=$(echo /usr/lib/python3*/config-"$version"-*/libpython"$version".a)
one python "$python" "-no-pie -I/usr/include/python$version" "-lexpat -lz -lm -ldl" in.py
finish
