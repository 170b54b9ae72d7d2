/* fruit.h: two functions with the same code, in two files, so that no compiler sees both. */
int apples(const int *weight, int n);
int pears(const int *weight, int n);
