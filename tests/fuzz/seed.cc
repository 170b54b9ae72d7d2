// seed.cc: a program of a few kilobytes with one of everything that readers look at; linked without libraries, never run.
extern "C" {
volatile int sink;
int (*pointer)(int);
[[noreturn]] void _start();
void die();
}
#define KEEP __attribute__((noinline, noclone))
static inline __attribute__((always_inline)) int inner(int x) { int y = x * 3; sink = y; return y + sink; }

KEEP int f0(int x) { sink = x; return x + 1; }
KEEP int f1(int x) { sink = x; return x + 1; }
KEEP int g0(int x) { return f0(x) + inner(x); }
KEEP int g1(int x) { return f1(x) + inner(x); }

KEEP int choose(int x)
{
	switch (x) {
	case 0: return sink + 1;
	case 1: return sink * 7;
	case 2: return f0(3);
	case 3: { int local = sink; local += f1(local); return local; }
	case 4: return sink - 9;
	case 5: return sink << 3;
	default: return 0;
	}
}

struct A {
	virtual int one(int x) { return x + sink; }
	virtual int two(int x) { return x - sink; }
};
struct B : A {
	int one(int x) override { return x + sink; }
	int two(int x) override { return f1(x); }
};
namespace space {
template <class T> KEEP T twice(T x) { return x + x + (T)sink; }
}

#ifdef __EXCEPTIONS
struct Guard { ~Guard() { sink = 0; } };
KEEP int careful(int x)
{
	Guard g;
	try {
		if (x) throw x;
		return g0(x);
	} catch (int i) {
		return i;
	} catch (...) {
		return 2;
	}
}
#endif

A a;
B b;
KEEP int call(A *p, int x) { return p->one(x) + p->two(x); }

void _start()
{
	pointer = f1;
	int n = g0(1) + g1(2) + choose(sink) + call(sink ? &a : &b, 3) + space::twice(4) + (int)space::twice(5u) + pointer(sink);
#ifdef __EXCEPTIONS
	n += careful(n);
#endif
	sink = n;
	for (;;)
		;
}
