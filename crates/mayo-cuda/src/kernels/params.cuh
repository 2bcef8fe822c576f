// Made from the sets of `lanework-mayo` by src/launch/header.rs; a test compares. Do not edit.
#pragma once

__device__ const u8 AES_SBOX[256] = {
    99, 124, 119, 123, 242, 107, 111, 197, 48, 1, 103, 43, 254, 215, 171, 118, 202, 130, 201, 125, 250, 89, 71, 240, 173, 212, 162, 175, 156, 164,
    114, 192, 183, 253, 147, 38, 54, 63, 247, 204, 52, 165, 229, 241, 113, 216, 49, 21, 4, 199, 35, 195, 24, 150, 5, 154, 7, 18, 128, 226,
    235, 39, 178, 117, 9, 131, 44, 26, 27, 110, 90, 160, 82, 59, 214, 179, 41, 227, 47, 132, 83, 209, 0, 237, 32, 252, 177, 91, 106, 203,
    190, 57, 74, 76, 88, 207, 208, 239, 170, 251, 67, 77, 51, 133, 69, 249, 2, 127, 80, 60, 159, 168, 81, 163, 64, 143, 146, 157, 56, 245,
    188, 182, 218, 33, 16, 255, 243, 210, 205, 12, 19, 236, 95, 151, 68, 23, 196, 167, 126, 61, 100, 93, 25, 115, 96, 129, 79, 220, 34, 42,
    144, 136, 70, 238, 184, 20, 222, 94, 11, 219, 224, 50, 58, 10, 73, 6, 36, 92, 194, 211, 172, 98, 145, 149, 228, 121, 231, 200, 55, 109,
    141, 213, 78, 169, 108, 86, 244, 234, 101, 122, 174, 8, 186, 120, 37, 46, 28, 166, 180, 198, 232, 221, 116, 31, 75, 189, 139, 138, 112, 62,
    181, 102, 72, 3, 246, 14, 97, 53, 87, 185, 134, 193, 29, 158, 225, 248, 152, 17, 105, 217, 142, 148, 155, 30, 135, 233, 206, 85, 40, 223,
    140, 161, 137, 13, 191, 230, 66, 104, 65, 153, 45, 15, 176, 84, 187, 22,
};

// MAYO-1 round 3: which pair has which power of z, and the other way round.
__device__ const u8 SCHEDULE_0[110] = {
    5, 1, 6, 4, 8, 5, 8, 8, 9, 2, 8, 0, 1, 1, 2, 0, 7, 2, 9, 7, 0, 0, 6, 1, 6, 0, 5, 5, 7, 1,
    3, 3, 3, 2, 7, 5, 9, 4, 4, 1, 7, 6, 8, 2, 4, 4, 8, 3, 5, 0, 1, 0, 5, 3, 9, 0, 9, 9, 8, 7,
    5, 2, 9, 8, 7, 0, 5, 4, 9, 3, 7, 4, 6, 6, 8, 1, 7, 7, 4, 3, 4, 0, 8, 4, 4, 2, 9, 6, 3, 0,
    2, 1, 6, 5, 9, 5, 6, 3, 8, 6, 3, 1, 2, 2, 9, 1, 6, 2, 7, 3,
};
__device__ const u8 POWER_0[100] = {
    10, 25, 7, 44, 40, 24, 12, 32, 5, 27, 25, 6, 45, 50, 19, 0, 11, 14, 37, 52, 7, 45, 51, 16, 42, 30, 53, 8, 21, 4,
    44, 50, 16, 15, 39, 26, 48, 54, 23, 34, 40, 19, 42, 39, 22, 33, 1, 35, 41, 18, 24, 0, 30, 26, 33, 13, 46, 17, 2, 47,
    12, 11, 53, 48, 1, 46, 36, 20, 49, 43, 32, 14, 8, 54, 35, 17, 20, 38, 29, 9, 5, 37, 21, 23, 41, 2, 49, 29, 3, 31,
    27, 52, 4, 34, 18, 47, 43, 9, 31, 28,
};
struct Set0 {
    static constexpr int N = 88;
    static constexpr int M = 80;
    static constexpr int O = 8;
    static constexpr int K = 10;
    static constexpr int V = 80;
    static constexpr int PAIRS = 55;
    static constexpr int M_BYTES = 40;
    static constexpr int V_BYTES = 40;
    static constexpr int O_BYTES = 320;
    static constexpr int R_BYTES = 40;
    static constexpr int SALT_BYTES = 24;
    static constexpr int DIGEST_BYTES = 32;
    static constexpr int PK_BYTES = 1456;
    static constexpr int SIG_BYTES = 464;
    static constexpr int P1_VECS = 3240;
    static constexpr int P12_VECS = 3880;
    static constexpr int P3_VECS = 36;
    static constexpr int TAIL0 = 2;
    static constexpr int TAIL1 = 0;
    static constexpr int TAIL2 = 4;
    static constexpr int TAIL3 = 2;
    static constexpr int WS = 5;
    static constexpr int SLICES = 2;
    static constexpr bool LINEAR = true;
    DEVICE u32 schedule(u32 l, int which) { return SCHEDULE_0[2 * l + which]; }
    DEVICE u32 power(u32 i, u32 j) { return POWER_0[i * K + j]; }
};

// MAYO-2 round 3: which pair has which power of z, and the other way round.
__device__ const u8 SCHEDULE_1[30] = {
    1, 1, 3, 2, 4, 1, 2, 0, 3, 0, 4, 2, 4, 0, 4, 4, 2, 2, 4, 3, 3, 1, 0, 0, 3, 3, 1, 0, 2, 1,
};
__device__ const u8 POWER_1[25] = {
    11, 13, 3, 4, 6, 13, 0, 14, 10, 2, 3, 14, 8, 1, 5, 4, 10, 1, 12, 9, 6, 2, 5, 9, 7,
};
struct Set1 {
    static constexpr int N = 86;
    static constexpr int M = 64;
    static constexpr int O = 13;
    static constexpr int K = 5;
    static constexpr int V = 73;
    static constexpr int PAIRS = 15;
    static constexpr int M_BYTES = 32;
    static constexpr int V_BYTES = 37;
    static constexpr int O_BYTES = 475;
    static constexpr int R_BYTES = 33;
    static constexpr int SALT_BYTES = 24;
    static constexpr int DIGEST_BYTES = 32;
    static constexpr int PK_BYTES = 2928;
    static constexpr int SIG_BYTES = 239;
    static constexpr int P1_VECS = 2701;
    static constexpr int P12_VECS = 3650;
    static constexpr int P3_VECS = 91;
    static constexpr int TAIL0 = 8;
    static constexpr int TAIL1 = 0;
    static constexpr int TAIL2 = 2;
    static constexpr int TAIL3 = 8;
    static constexpr int WS = 4;
    static constexpr int SLICES = 2;
    static constexpr bool LINEAR = true;
    DEVICE u32 schedule(u32 l, int which) { return SCHEDULE_1[2 * l + which]; }
    DEVICE u32 power(u32 i, u32 j) { return POWER_1[i * K + j]; }
};

// MAYO-3 round 3: which pair has which power of z, and the other way round.
__device__ const u8 SCHEDULE_2[132] = {
    5, 4, 9, 6, 10, 8, 8, 5, 4, 0, 4, 3, 2, 2, 5, 0, 10, 5, 9, 8, 7, 3, 3, 1, 9, 1, 1, 0, 7, 0,
    3, 2, 6, 2, 10, 6, 3, 3, 5, 1, 10, 1, 5, 3, 5, 5, 10, 4, 9, 3, 8, 8, 7, 7, 6, 5, 6, 3, 7, 4,
    8, 6, 10, 3, 3, 0, 10, 10, 7, 2, 0, 0, 8, 1, 6, 6, 4, 4, 2, 0, 6, 0, 10, 7, 2, 1, 8, 0, 8, 2,
    7, 6, 9, 2, 5, 2, 9, 5, 7, 1, 10, 2, 8, 3, 8, 7, 9, 9, 8, 4, 1, 1, 6, 4, 4, 2, 6, 1, 9, 7,
    9, 4, 7, 5, 9, 0, 4, 1, 10, 0, 10, 9,
};
__device__ const u8 POWER_2[121] = {
    35, 13, 39, 32, 4, 7, 40, 14, 43, 62, 64, 13, 55, 42, 11, 63, 19, 58, 49, 36, 12, 20, 39, 42, 6, 15, 57, 47, 16, 34,
    44, 46, 50, 32, 11, 15, 18, 5, 21, 28, 10, 51, 24, 31, 4, 63, 57, 5, 38, 0, 56, 29, 54, 60, 23, 7, 19, 47, 21, 0,
    22, 27, 61, 3, 48, 8, 40, 58, 16, 28, 56, 27, 37, 45, 30, 1, 17, 14, 49, 34, 10, 29, 61, 45, 26, 52, 59, 41, 43, 36,
    44, 51, 54, 3, 30, 52, 25, 9, 2, 62, 12, 46, 24, 60, 48, 1, 59, 9, 53, 65, 64, 20, 50, 31, 23, 8, 17, 41, 2, 65,
    33,
};
struct Set2 {
    static constexpr int N = 118;
    static constexpr int M = 108;
    static constexpr int O = 10;
    static constexpr int K = 11;
    static constexpr int V = 108;
    static constexpr int PAIRS = 66;
    static constexpr int M_BYTES = 54;
    static constexpr int V_BYTES = 54;
    static constexpr int O_BYTES = 540;
    static constexpr int R_BYTES = 55;
    static constexpr int SALT_BYTES = 32;
    static constexpr int DIGEST_BYTES = 48;
    static constexpr int PK_BYTES = 2986;
    static constexpr int SIG_BYTES = 681;
    static constexpr int P1_VECS = 5886;
    static constexpr int P12_VECS = 6966;
    static constexpr int P3_VECS = 55;
    static constexpr int TAIL0 = 8;
    static constexpr int TAIL1 = 0;
    static constexpr int TAIL2 = 1;
    static constexpr int TAIL3 = 7;
    static constexpr int WS = 7;
    static constexpr int SLICES = 2;
    static constexpr bool LINEAR = true;
    DEVICE u32 schedule(u32 l, int which) { return SCHEDULE_2[2 * l + which]; }
    DEVICE u32 power(u32 i, u32 j) { return POWER_2[i * K + j]; }
};

// MAYO-5 round 3: which pair has which power of z, and the other way round.
__device__ const u8 SCHEDULE_3[156] = {
    5, 0, 9, 5, 7, 4, 11, 9, 8, 4, 6, 3, 6, 4, 1, 1, 10, 3, 9, 1, 7, 2, 10, 2, 7, 0, 11, 10, 6, 6,
    11, 1, 4, 3, 9, 3, 7, 3, 11, 2, 9, 0, 10, 5, 6, 5, 8, 5, 4, 0, 6, 0, 3, 2, 5, 4, 9, 9, 7, 6,
    1, 0, 6, 1, 11, 0, 8, 8, 9, 2, 8, 1, 10, 8, 2, 1, 11, 4, 10, 7, 8, 2, 4, 4, 8, 3, 4, 1, 8, 6,
    5, 2, 10, 9, 7, 1, 11, 5, 7, 5, 10, 10, 9, 4, 2, 0, 3, 0, 6, 2, 3, 1, 11, 7, 10, 0, 7, 7, 9, 7,
    5, 3, 3, 3, 0, 0, 5, 5, 2, 2, 9, 6, 11, 11, 8, 7, 10, 4, 10, 1, 5, 1, 8, 0, 11, 6, 9, 8, 11, 8,
    11, 3, 4, 2, 10, 6,
};
__device__ const u8 POWER_3[144] = {
    62, 30, 52, 53, 24, 0, 25, 12, 71, 20, 57, 32, 30, 7, 37, 55, 43, 70, 31, 47, 35, 9, 69, 15, 52, 37, 64, 26, 76, 45,
    54, 10, 40, 34, 11, 19, 53, 55, 26, 61, 16, 60, 5, 18, 42, 17, 8, 75, 24, 43, 76, 16, 41, 27, 6, 2, 4, 51, 68, 38,
    0, 70, 45, 60, 27, 63, 22, 49, 23, 1, 21, 48, 25, 31, 54, 5, 6, 22, 14, 29, 44, 65, 77, 72, 12, 47, 10, 18, 2, 49,
    29, 58, 67, 59, 39, 56, 71, 35, 40, 42, 4, 23, 44, 67, 33, 73, 36, 74, 20, 9, 34, 17, 51, 1, 65, 59, 73, 28, 46, 3,
    57, 69, 11, 8, 68, 21, 77, 39, 36, 46, 50, 13, 32, 15, 19, 75, 38, 48, 72, 56, 74, 3, 13, 66,
};
struct Set3 {
    static constexpr int N = 154;
    static constexpr int M = 142;
    static constexpr int O = 12;
    static constexpr int K = 12;
    static constexpr int V = 142;
    static constexpr int PAIRS = 78;
    static constexpr int M_BYTES = 71;
    static constexpr int V_BYTES = 71;
    static constexpr int O_BYTES = 852;
    static constexpr int R_BYTES = 72;
    static constexpr int SALT_BYTES = 40;
    static constexpr int DIGEST_BYTES = 64;
    static constexpr int PK_BYTES = 5554;
    static constexpr int SIG_BYTES = 964;
    static constexpr int P1_VECS = 10153;
    static constexpr int P12_VECS = 11857;
    static constexpr int P3_VECS = 78;
    static constexpr int TAIL0 = 4;
    static constexpr int TAIL1 = 0;
    static constexpr int TAIL2 = 8;
    static constexpr int TAIL3 = 1;
    static constexpr int WS = 3;
    static constexpr int SLICES = 6;
    static constexpr bool LINEAR = true;
    DEVICE u32 schedule(u32 l, int which) { return SCHEDULE_3[2 * l + which]; }
    DEVICE u32 power(u32 i, u32 j) { return POWER_3[i * K + j]; }
};

// MAYO-1 round 2: which pair has which power of z, and the other way round.
__device__ const u8 SCHEDULE_4[110] = {
    0, 9, 0, 8, 0, 7, 0, 6, 0, 5, 0, 4, 0, 3, 0, 2, 0, 1, 0, 0, 1, 9, 1, 8, 1, 7, 1, 6, 1, 5,
    1, 4, 1, 3, 1, 2, 1, 1, 2, 9, 2, 8, 2, 7, 2, 6, 2, 5, 2, 4, 2, 3, 2, 2, 3, 9, 3, 8, 3, 7,
    3, 6, 3, 5, 3, 4, 3, 3, 4, 9, 4, 8, 4, 7, 4, 6, 4, 5, 4, 4, 5, 9, 5, 8, 5, 7, 5, 6, 5, 5,
    6, 9, 6, 8, 6, 7, 6, 6, 7, 9, 7, 8, 7, 7, 8, 9, 8, 8, 9, 9,
};
__device__ const u8 POWER_4[100] = {
    9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 8, 18, 17, 16, 15, 14, 13, 12, 11, 10, 7, 17, 26, 25, 24, 23, 22, 21, 20, 19,
    6, 16, 25, 33, 32, 31, 30, 29, 28, 27, 5, 15, 24, 32, 39, 38, 37, 36, 35, 34, 4, 14, 23, 31, 38, 44, 43, 42, 41, 40,
    3, 13, 22, 30, 37, 43, 48, 47, 46, 45, 2, 12, 21, 29, 36, 42, 47, 51, 50, 49, 1, 11, 20, 28, 35, 41, 46, 50, 53, 52,
    0, 10, 19, 27, 34, 40, 45, 49, 52, 54,
};
struct Set4 {
    static constexpr int N = 86;
    static constexpr int M = 78;
    static constexpr int O = 8;
    static constexpr int K = 10;
    static constexpr int V = 78;
    static constexpr int PAIRS = 55;
    static constexpr int M_BYTES = 39;
    static constexpr int V_BYTES = 39;
    static constexpr int O_BYTES = 312;
    static constexpr int R_BYTES = 40;
    static constexpr int SALT_BYTES = 24;
    static constexpr int DIGEST_BYTES = 32;
    static constexpr int PK_BYTES = 1420;
    static constexpr int SIG_BYTES = 454;
    static constexpr int P1_VECS = 3081;
    static constexpr int P12_VECS = 3705;
    static constexpr int P3_VECS = 36;
    static constexpr int TAIL0 = 8;
    static constexpr int TAIL1 = 1;
    static constexpr int TAIL2 = 1;
    static constexpr int TAIL3 = 0;
    static constexpr int WS = 5;
    static constexpr int SLICES = 2;
    static constexpr bool LINEAR = false;
    DEVICE u32 schedule(u32 l, int which) { return SCHEDULE_4[2 * l + which]; }
    DEVICE u32 power(u32 i, u32 j) { return POWER_4[i * K + j]; }
};

// MAYO-2 round 2: which pair has which power of z, and the other way round.
__device__ const u8 SCHEDULE_5[20] = {
    0, 3, 0, 2, 0, 1, 0, 0, 1, 3, 1, 2, 1, 1, 2, 3, 2, 2, 3, 3,
};
__device__ const u8 POWER_5[16] = {
    3, 2, 1, 0, 2, 6, 5, 4, 1, 5, 8, 7, 0, 4, 7, 9,
};
struct Set5 {
    static constexpr int N = 81;
    static constexpr int M = 64;
    static constexpr int O = 17;
    static constexpr int K = 4;
    static constexpr int V = 64;
    static constexpr int PAIRS = 10;
    static constexpr int M_BYTES = 32;
    static constexpr int V_BYTES = 32;
    static constexpr int O_BYTES = 544;
    static constexpr int R_BYTES = 34;
    static constexpr int SALT_BYTES = 24;
    static constexpr int DIGEST_BYTES = 32;
    static constexpr int PK_BYTES = 4912;
    static constexpr int SIG_BYTES = 186;
    static constexpr int P1_VECS = 2080;
    static constexpr int P12_VECS = 3168;
    static constexpr int P3_VECS = 153;
    static constexpr int TAIL0 = 8;
    static constexpr int TAIL1 = 0;
    static constexpr int TAIL2 = 2;
    static constexpr int TAIL3 = 8;
    static constexpr int WS = 4;
    static constexpr int SLICES = 2;
    static constexpr bool LINEAR = false;
    DEVICE u32 schedule(u32 l, int which) { return SCHEDULE_5[2 * l + which]; }
    DEVICE u32 power(u32 i, u32 j) { return POWER_5[i * K + j]; }
};

// MAYO-3 round 2: which pair has which power of z, and the other way round.
__device__ const u8 SCHEDULE_6[132] = {
    0, 10, 0, 9, 0, 8, 0, 7, 0, 6, 0, 5, 0, 4, 0, 3, 0, 2, 0, 1, 0, 0, 1, 10, 1, 9, 1, 8, 1, 7,
    1, 6, 1, 5, 1, 4, 1, 3, 1, 2, 1, 1, 2, 10, 2, 9, 2, 8, 2, 7, 2, 6, 2, 5, 2, 4, 2, 3, 2, 2,
    3, 10, 3, 9, 3, 8, 3, 7, 3, 6, 3, 5, 3, 4, 3, 3, 4, 10, 4, 9, 4, 8, 4, 7, 4, 6, 4, 5, 4, 4,
    5, 10, 5, 9, 5, 8, 5, 7, 5, 6, 5, 5, 6, 10, 6, 9, 6, 8, 6, 7, 6, 6, 7, 10, 7, 9, 7, 8, 7, 7,
    8, 10, 8, 9, 8, 8, 9, 10, 9, 9, 10, 10,
};
__device__ const u8 POWER_6[121] = {
    10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 9, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 8, 19, 29, 28, 27, 26, 25, 24,
    23, 22, 21, 7, 18, 28, 37, 36, 35, 34, 33, 32, 31, 30, 6, 17, 27, 36, 44, 43, 42, 41, 40, 39, 38, 5, 16, 26, 35, 43,
    50, 49, 48, 47, 46, 45, 4, 15, 25, 34, 42, 49, 55, 54, 53, 52, 51, 3, 14, 24, 33, 41, 48, 54, 59, 58, 57, 56, 2, 13,
    23, 32, 40, 47, 53, 58, 62, 61, 60, 1, 12, 22, 31, 39, 46, 52, 57, 61, 64, 63, 0, 11, 21, 30, 38, 45, 51, 56, 60, 63,
    65,
};
struct Set6 {
    static constexpr int N = 118;
    static constexpr int M = 108;
    static constexpr int O = 10;
    static constexpr int K = 11;
    static constexpr int V = 108;
    static constexpr int PAIRS = 66;
    static constexpr int M_BYTES = 54;
    static constexpr int V_BYTES = 54;
    static constexpr int O_BYTES = 540;
    static constexpr int R_BYTES = 55;
    static constexpr int SALT_BYTES = 32;
    static constexpr int DIGEST_BYTES = 48;
    static constexpr int PK_BYTES = 2986;
    static constexpr int SIG_BYTES = 681;
    static constexpr int P1_VECS = 5886;
    static constexpr int P12_VECS = 6966;
    static constexpr int P3_VECS = 55;
    static constexpr int TAIL0 = 8;
    static constexpr int TAIL1 = 0;
    static constexpr int TAIL2 = 1;
    static constexpr int TAIL3 = 7;
    static constexpr int WS = 7;
    static constexpr int SLICES = 2;
    static constexpr bool LINEAR = false;
    DEVICE u32 schedule(u32 l, int which) { return SCHEDULE_6[2 * l + which]; }
    DEVICE u32 power(u32 i, u32 j) { return POWER_6[i * K + j]; }
};

// MAYO-5 round 2: which pair has which power of z, and the other way round.
__device__ const u8 SCHEDULE_7[156] = {
    0, 11, 0, 10, 0, 9, 0, 8, 0, 7, 0, 6, 0, 5, 0, 4, 0, 3, 0, 2, 0, 1, 0, 0, 1, 11, 1, 10, 1, 9,
    1, 8, 1, 7, 1, 6, 1, 5, 1, 4, 1, 3, 1, 2, 1, 1, 2, 11, 2, 10, 2, 9, 2, 8, 2, 7, 2, 6, 2, 5,
    2, 4, 2, 3, 2, 2, 3, 11, 3, 10, 3, 9, 3, 8, 3, 7, 3, 6, 3, 5, 3, 4, 3, 3, 4, 11, 4, 10, 4, 9,
    4, 8, 4, 7, 4, 6, 4, 5, 4, 4, 5, 11, 5, 10, 5, 9, 5, 8, 5, 7, 5, 6, 5, 5, 6, 11, 6, 10, 6, 9,
    6, 8, 6, 7, 6, 6, 7, 11, 7, 10, 7, 9, 7, 8, 7, 7, 8, 11, 8, 10, 8, 9, 8, 8, 9, 11, 9, 10, 9, 9,
    10, 11, 10, 10, 11, 11,
};
__device__ const u8 POWER_7[144] = {
    11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 10, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 9, 21, 32, 31, 30, 29,
    28, 27, 26, 25, 24, 23, 8, 20, 31, 41, 40, 39, 38, 37, 36, 35, 34, 33, 7, 19, 30, 40, 49, 48, 47, 46, 45, 44, 43, 42,
    6, 18, 29, 39, 48, 56, 55, 54, 53, 52, 51, 50, 5, 17, 28, 38, 47, 55, 62, 61, 60, 59, 58, 57, 4, 16, 27, 37, 46, 54,
    61, 67, 66, 65, 64, 63, 3, 15, 26, 36, 45, 53, 60, 66, 71, 70, 69, 68, 2, 14, 25, 35, 44, 52, 59, 65, 70, 74, 73, 72,
    1, 13, 24, 34, 43, 51, 58, 64, 69, 73, 76, 75, 0, 12, 23, 33, 42, 50, 57, 63, 68, 72, 75, 77,
};
struct Set7 {
    static constexpr int N = 154;
    static constexpr int M = 142;
    static constexpr int O = 12;
    static constexpr int K = 12;
    static constexpr int V = 142;
    static constexpr int PAIRS = 78;
    static constexpr int M_BYTES = 71;
    static constexpr int V_BYTES = 71;
    static constexpr int O_BYTES = 852;
    static constexpr int R_BYTES = 72;
    static constexpr int SALT_BYTES = 40;
    static constexpr int DIGEST_BYTES = 64;
    static constexpr int PK_BYTES = 5554;
    static constexpr int SIG_BYTES = 964;
    static constexpr int P1_VECS = 10153;
    static constexpr int P12_VECS = 11857;
    static constexpr int P3_VECS = 78;
    static constexpr int TAIL0 = 4;
    static constexpr int TAIL1 = 0;
    static constexpr int TAIL2 = 8;
    static constexpr int TAIL3 = 1;
    static constexpr int WS = 3;
    static constexpr int SLICES = 6;
    static constexpr bool LINEAR = false;
    DEVICE u32 schedule(u32 l, int which) { return SCHEDULE_7[2 * l + which]; }
    DEVICE u32 power(u32 i, u32 j) { return POWER_7[i * K + j]; }
};

#define EACH_SET(stamp) stamp(0) stamp(1) stamp(2) stamp(3) stamp(4) stamp(5) stamp(6) stamp(7)
#define EACH_SMALL_SET(stamp) stamp(0) stamp(1) stamp(4) stamp(5)
