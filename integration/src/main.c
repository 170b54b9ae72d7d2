/* main.c: prints two sums; both come from the same code when the program was folded. */
#include "fruit.h"
#include <stdio.h>

int main(void)
{
	static const int weight[] = { 5, 1, 2, 2, 7 };
	printf("apples %d\n", apples(weight, 5));
	printf("pears %d\n", pears(weight, 3));
	return 0;
}
