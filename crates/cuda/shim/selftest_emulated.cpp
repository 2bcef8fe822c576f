// The self-test and its counterpart as C++.
#include "../src/backend/selftest.cu"
#include "faults.cu"
