/* pears.c: the sum of the weights that are worth weighing. */
#include "fruit.h"

int pears(const int *weight, int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++) {
		if (weight[i] < 0)
			return -1;
		if (weight[i] > 2)
			sum += 3 * weight[i];
		else if (i % 2)
			sum -= weight[i] / 2;
	}
	return sum;
}
