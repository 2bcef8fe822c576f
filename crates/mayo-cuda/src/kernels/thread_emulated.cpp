// `thread.cu` for the emulated device.
#include "thread.cu"
