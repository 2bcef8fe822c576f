// `mayo.cu` for the emulated device.
#include "mayo.cu"
