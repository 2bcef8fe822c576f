// What every kernel file begins with: the workspace's dialect of CUDA C++, and short names.
#pragma once
#include "device.cuh"

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;

#define DEVICE __device__ static __forceinline__
#define KERNEL extern "C" __global__ void
#ifdef LANEWORK_EMULATED
#define UNROLL
#define ROLLED
#else
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")
#endif

// Where a check plants a leak, to be seen finding it; nothing anywhere else.
#ifndef PLANT_BRANCH
#define PLANT_BRANCH(secret)
#define PLANT_LOAD(secret)
#endif
