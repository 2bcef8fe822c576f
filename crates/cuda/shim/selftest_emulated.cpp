// The self-test's kernels as C++.
#include "../src/backend/selftest.cu"
