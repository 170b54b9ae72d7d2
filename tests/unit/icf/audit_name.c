/* audit_name.c: the parts of demangled names, and the pool of strings. */
#include "icf/audit/name.h"
#include "icf/audit/pool.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void family(void **state)
{
	static const struct {
		const char *name, *family;
	} t[] = {
		{ "main", "main" },
		{ "parse.part.0.cold", "parse" },
		{ ".hidden", ".hidden" },
		{ "0x401000", "0x401000" },
		{ "foo(int)", "foo" },
		{ "foo(int) (.cold)", "foo" },
		{ "foo(int) [clone .isra.0]", "foo" },
		{ "int ns::twice<int>(int)", "ns::twice" },
		{ "std::vector<int, std::allocator<int>>::_M_realloc_insert<int const&>(int const&)",
		  "std::vector<...>::_M_realloc_insert" },
		{ "void std::__introsort_loop<long*, __gnu_cxx::__ops::_Iter_less_iter>(long*, long*)",
		  "std::__introsort_loop" },
		{ "A::~A()", "A::~A" },
		{ "A<B<C>>::A(A<B<C>> const&)", "A<...>::A" },
		{ "(anonymous namespace)::f(int)", "(anonymous namespace)::f" },
		{ "ns::operator<(ns::A const&, ns::A const&)", "ns::operator<" },
		{ "std::ostream& ns::operator<<(std::ostream&, ns::A const&)", "ns::operator<<" },
		{ "bool operator<<int>(Box<int> const&, Box<int> const&)", "operator<" },
		{ "bool operator><int>(Box<int> const&, Box<int> const&)", "operator>" },
		{ "Box<int>::operator->() const", "Box<...>::operator->" },
		{ "Box<int>::operator()(int) const", "Box<...>::operator()" },
		{ "Box<int>::operator bool() const", "Box<...>::operator bool" },
		{ "Box<int>::operator std::pair<int, int>()", "Box<...>::operator std::pair" },
		{ "operator new[](unsigned long)", "operator new[]" },
		{ "non-virtual thunk to A::f()", "A::f" },
		{ "main::'lambda'(int)::operator()(int) const", "main::'lambda'()::operator()" },
		{ "ns::f(int, char)::'lambda0'(int)::operator()(int) const",
		  "ns::f()::'lambda0'()::operator()" },
		{ "A::f() const::'lambda'()::operator()() const",
		  "A::f() const::'lambda'()::operator()" },
		{ "decltype(auto) ns::visit<A>(A&&)", "ns::visit" },
		{ "std::enable_if<((sizeof(int))>(4)), int>::type ns::g<int>()", "ns::g" },
		{ "core::ptr::drop_in_place::h0123456789abcdef", "core::ptr::drop_in_place" },
		{ "<alloc::vec::Vec<T> as core::ops::Drop>::drop",
		  "<alloc::vec::Vec<...> as core::ops::Drop>::drop" },
		{ "broken<int::f(", "broken" },
		{ "", "" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		struct icf_name n;
		char buf[256];
		icf_name_parse(&n, t[i].name);
		icf_name_family(&n, buf, sizeof buf);
		if (strcmp(buf, t[i].family) != 0)
			print_message("%s\n", t[i].name);
		assert_string_equal(buf, t[i].family);
	}
}

static void parts(void **state)
{
	struct icf_name n;
	(void)state;
	icf_name_parse(&n, "unsigned int a::B<c::D>::e<int>(char) const (.cold)");
	assert_int_equal(n.n, 3);
	assert_true(n.is_const);
	assert_false(n.thunk);
	assert_string_equal(n.text + n.clone, " (.cold)");
	assert_int_equal(icf_name_base(&n, 1), 1);
	icf_name_parse(&n, "virtual thunk to a::B::f()");
	assert_true(n.thunk);
	assert_int_equal(n.n, 3);
}

static void brief(void **state)
{
	static const struct {
		const char *name;
		size_t limit;
		const char *brief;
	} t[] = {
		{ "void std::vector<int, std::allocator<int>>::push_back(int const&)", 80,
		  "std::vector<int>::push_back" },
		{ "std::map<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char>>, int>::f()",
		  80, "std::map<std::string, int>::f" },
		{ "A<B<C<D<E<F<int>>>>>>::f()", 80, "A<B<C<D<E<...>>>>>::f" },
		{ "A<B<C<D>>>::f()", 12, "A<B<...>>::f" },
		{ "A<Bbbbbbbbbbb<Cccccccccccc>, Dddddddddd>::ffffff()", 32,
		  "A<Bbbbbbbbbbb<Ccccc...>::ffffff" },
		{ "f(int) (.part.0)", 80, "f (.part.0)" },
		{ "non-virtual thunk to A::f()", 80, "[thunk] A::f" },
		{ "abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz()", 30,
		  "abcdefghi...ijklmnopqrstuvwxyz" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		struct icf_name n;
		char buf[256];
		icf_name_parse(&n, t[i].name);
		icf_name_brief(&n, t[i].limit, buf, sizeof buf);
		assert_true(strlen(buf) <= t[i].limit);
		assert_string_equal(buf, t[i].brief);
	}
}

static void contrast(void **state)
{
	char a[128], b[128];
	(void)state;
	icf_name_contrast("f<int>(char)", "g<int>(char)", 60, a, sizeof a);
	assert_string_equal(a, "f<int>");
	icf_name_contrast("ns::f(A::one const&)", "ns::f(A::two const&)", 60, a, sizeof a);
	icf_name_contrast("ns::f(A::two const&)", "ns::f(A::one const&)", 60, b, sizeof b);
	assert_string_not_equal(a, b);
	assert_memory_equal(a, "ns::f [", 7);
	icf_name_contrast("same", "same", 60, a, sizeof a);
	assert_string_equal(a, "same");
	icf_name_contrast("typeinfo for bool (*)(int)", "x", 60, a, sizeof a);
	assert_string_equal(a, "typeinfo for bool (*)(int)");
}

/* Names are what a file says: any bytes, and no buffer is too small. */
static void hostile(void **state)
{
	static const char alphabet[] = "<>()[]{}::,, '&*~operator const.ab\xc3\xa9";
	char text[300], other[300], buf[600];
	unsigned seed = 12345;
	(void)state;
	for (int round = 0; round < 40000; round++) {
		size_t len = (seed = seed * 1103515245 + 12345) >> 16 & 255;
		for (size_t i = 0; i < len; i++) {
			seed = seed * 1103515245 + 12345;
			text[i] = other[i] = alphabet[(seed >> 16) % (sizeof alphabet - 1)];
		}
		text[len] = other[len] = 0;
		if (len)
			other[len - 1] = 'q';
		struct icf_name n;
		icf_name_parse(&n, text);
		assert_true(n.n >= 1 && n.n <= ICF_NAME_PARTS && n.clone <= len);
		for (unsigned p = 0; p < n.n; p++)
			assert_true(n.part[p].begin <= n.part[p].end && n.part[p].end <= len &&
				    icf_name_base(&n, p) <= n.part[p].end - n.part[p].begin);
		size_t size = 1 + seed % sizeof buf, limit = seed / 7 % 120;
		icf_name_family(&n, buf, size);
		assert_true(strlen(buf) < size);
		icf_name_brief(&n, limit, buf, size);
		assert_true(strlen(buf) < size);
		icf_name_part_brief(&n, n.n - 1, limit, buf, size);
		assert_true(strlen(buf) < size);
		icf_name_contrast(text, other, 100, buf, sizeof buf);
		assert_true(strlen(buf) < sizeof buf);
	}
}

static void pool(void **state)
{
	struct icf_pool p = { 0 };
	char text[32];
	(void)state;
	assert_int_equal(icf_pool_find(&p, "x", 1), ICF_POOL_NONE);
	for (uint32_t i = 0; i < 5000; i++) {
		int n = snprintf(text, sizeof text, "string %u", i);
		assert_int_equal(icf_pool_add(&p, text, (size_t)n), i);
	}
	for (uint32_t i = 0; i < 5000; i++) {
		int n = snprintf(text, sizeof text, "string %u", i);
		assert_int_equal(icf_pool_add(&p, text, (size_t)n), i);
		assert_int_equal(icf_pool_find(&p, text, (size_t)n), i);
		assert_string_equal(icf_pool_text(&p, i), text);
	}
	assert_int_equal(icf_pool_find(&p, "string", 6), ICF_POOL_NONE);
	assert_int_equal(icf_pool_add(&p, "", 0), 5000);
	assert_int_equal(icf_pool_add(&p, "string 17 and more", 9), 17);
	icf_pool_deinit(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(family),   cmocka_unit_test(parts),   cmocka_unit_test(brief),
		cmocka_unit_test(contrast), cmocka_unit_test(hostile), cmocka_unit_test(pool),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
