//! The instructions whose whole effect the decoder's tables give, or that the analysis treats by name. All others make a function opaque.
#![forbid(unsafe_code)]

use iced_x86::{CpuidFeature, Instruction, Mnemonic};

/// Whether the effect of an instruction is known: the registers, flags and memory that it reads and writes, and where it goes on.
/// Not those of the system, of enclaves, of virtual machines, of transactions and of user interrupts, which may change any register.
pub(crate) fn is_modelled(instruction: &Instruction) -> bool {
    use Mnemonic::{Hlt, Incsspd, Incsspq, Rdsspd, Rdsspq};
    match instruction.mnemonic() {
        // It is the end.
        Hlt => return true,
        // They only read and pop return addresses of the shadow stack.
        Rdsspd | Rdsspq | Incsspd | Incsspq => return true,
        _ => (),
    }
    let code = instruction.code();
    !instruction.is_privileged()
        && !code.is_jmp_far_indirect()
        && !code.is_call_far_indirect()
        && instruction.cpuid_features().iter().all(|&feature| knows(feature))
}

/// Whether the tables are relied on for the unprivileged instructions that came with a feature.
const fn knows(feature: CpuidFeature) -> bool {
    use CpuidFeature::{
        ADX, AES, AMX_BF16, AMX_COMPLEX, AMX_FP16, AMX_INT8, AMX_TILE, AVX, AVX_IFMA, AVX_NE_CONVERT,
        AVX_VNNI, AVX_VNNI_INT8, AVX_VNNI_INT16, AVX2, AVX512_BF16, AVX512_BITALG, AVX512_FP16, AVX512_IFMA,
        AVX512_VBMI, AVX512_VBMI2, AVX512_VNNI, AVX512_VPOPCNTDQ, AVX512BW, AVX512CD, AVX512DQ, AVX512F,
        AVX512VL, BMI1, BMI2, CET_IBT, CLDEMOTE, CLFLUSHOPT, CLFSH, CLWB, CLZERO, CMOV, CMPCCXADD,
        CMPXCHG16B, CPUID, CX8, D3NOW, D3NOWEXT, F16C, FMA, FMA4, FPU, FPU287, FPU387, FSGSBASE, FXSR, GFNI,
        INTEL186, INTEL286, INTEL386, INTEL486, INTEL8086, LZCNT, MMX, MOVBE, MOVDIR64B, MOVDIRI,
        MULTIBYTENOP, PAUSE, PCLMULQDQ, POPCNT, PREFETCHITI, PREFETCHW, PREFETCHWT1, RAO_INT, RDPID, RDRAND,
        RDSEED, RDTSCP, SERIALIZE, SHA, SHA512, SM3, SM4, SSE, SSE2, SSE3, SSE4_1, SSE4_2, SSE4A, SSSE3,
        SYSCALL, TBM, TSC, VAES, VPCLMULQDQ, X64, XOP, XSAVE, XSAVEC, XSAVEOPT, XSAVES,
    };
    matches!(
        feature,
        ADX | AES
            | AMX_BF16
            | AMX_COMPLEX
            | AMX_FP16
            | AMX_INT8
            | AMX_TILE
            | AVX
            | AVX_IFMA
            | AVX_NE_CONVERT
            | AVX_VNNI
            | AVX_VNNI_INT8
            | AVX_VNNI_INT16
            | AVX2
            | AVX512_BF16
            | AVX512_BITALG
            | AVX512_FP16
            | AVX512_IFMA
            | AVX512_VBMI
            | AVX512_VBMI2
            | AVX512_VNNI
            | AVX512_VPOPCNTDQ
            | AVX512BW
            | AVX512CD
            | AVX512DQ
            | AVX512F
            | AVX512VL
            | BMI1
            | BMI2
            | CET_IBT
            | CLDEMOTE
            | CLFLUSHOPT
            | CLFSH
            | CLWB
            | CLZERO
            | CMOV
            | CMPCCXADD
            | CMPXCHG16B
            | CPUID
            | CX8
            | D3NOW
            | D3NOWEXT
            | F16C
            | FMA
            | FMA4
            | FPU
            | FPU287
            | FPU387
            | FSGSBASE
            | FXSR
            | GFNI
            | INTEL186
            | INTEL286
            | INTEL386
            | INTEL486
            | INTEL8086
            | LZCNT
            | MMX
            | MOVBE
            | MOVDIR64B
            | MOVDIRI
            | MULTIBYTENOP
            | PAUSE
            | PCLMULQDQ
            | POPCNT
            | PREFETCHITI
            | PREFETCHW
            | PREFETCHWT1
            | RAO_INT
            | RDPID
            | RDRAND
            | RDSEED
            | RDTSCP
            | SERIALIZE
            | SHA
            | SHA512
            | SM3
            | SM4
            | SSE
            | SSE2
            | SSE3
            | SSE4_1
            | SSE4_2
            | SSE4A
            | SSSE3
            | SYSCALL
            | TBM
            | TSC
            | VAES
            | VPCLMULQDQ
            | X64
            | XOP
            | XSAVE
            | XSAVEC
            | XSAVEOPT
            | XSAVES
    )
}

/// Whether an instruction reads or changes any of the x87 state: registers, tags, status or control word, or the exceptions that wait there.
pub(crate) fn is_x87(instruction: &Instruction) -> bool {
    use CpuidFeature::{FPU, FPU287, FPU287XL_ONLY, FPU387, FPU387SL_ONLY};
    let of_x87 =
        |feature: &CpuidFeature| matches!(feature, FPU | FPU287 | FPU287XL_ONLY | FPU387 | FPU387SL_ONLY);
    instruction.cpuid_features().iter().any(of_x87)
        || matches!(instruction.mnemonic(), Mnemonic::Wait | Mnemonic::Emms | Mnemonic::Femms)
        || saves_all(instruction.mnemonic())
}

/// Instructions that read or write registers of every kind without naming any.
pub(crate) const fn saves_all(mnemonic: Mnemonic) -> bool {
    use Mnemonic::{Fxrstor, Fxrstor64, Fxsave, Fxsave64, Xrstor, Xrstor64, Xrstors, Xrstors64};
    use Mnemonic::{Xsave, Xsave64, Xsavec, Xsavec64, Xsaveopt, Xsaveopt64, Xsaves, Xsaves64};
    matches!(
        mnemonic,
        Fxrstor
            | Fxrstor64
            | Fxsave
            | Fxsave64
            | Xrstor
            | Xrstor64
            | Xrstors
            | Xrstors64
            | Xsave
            | Xsave64
            | Xsavec
            | Xsavec64
            | Xsaveopt
            | Xsaveopt64
            | Xsaves
            | Xsaves64
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Program;

    fn decoded(said: &str) -> Instruction {
        let out = Program::new("f.s", format!("f: {said}\n ret\n")).expect("a program").ops[0].instruction;
        assert!(!out.is_invalid(), "{said}");
        out
    }

    #[test]
    fn what_may_change_any_register_is_not_modelled() {
        for said in [
            "enclu",
            "vmcall",
            "vmmcall",
            "vmfunc",
            "vmlaunch",
            "getsec",
            "sysenter",
            "rsm",
            "xabort $1",
            "xend",
            "xbegin f",
            "monitor",
            "mwait",
            "rdpkru",
            "wrpkru",
            "senduipi %rax",
            "uiret",
            "stui",
            "wrmsr",
            "swapgs",
            "pconfig",
            "rep xcryptecb",
            "llwpcb %rax",
            "aesencwide128kl (%rax)",
            "ljmp *(%rax)",
            "lcall *(%rax)",
            "cli",
            "insb",
            "enqcmd (%rax), %rbx",
        ] {
            assert!(!is_modelled(&decoded(said)), "{said}");
        }
        for said in [
            "movq %rax, %rbx",
            "syscall",
            "hlt",
            "ud2",
            "cpuid",
            "rdtsc",
            "fldcw (%rax)",
            "emms",
            "xsave (%rax)",
            "tilerelease",
            "vzeroall",
            "vpgatherqq (%rax,%zmm1), %zmm2{%k1}",
            "rdsspq %rax",
            "movdir64b (%rax), %rbx",
            "int3",
            "lock cmpxchg16b (%rax)",
            "rep movsb",
            "pause",
            "nop",
            "endbr64",
            "rdfsbase %rax",
        ] {
            assert!(is_modelled(&decoded(said)), "{said}");
        }
    }

    #[test]
    fn every_use_of_the_x87_state_is_one() {
        for said in [
            "fldcw (%rax)",
            "fnstcw (%rax)",
            "fnclex",
            "fninit",
            "fnstsw %ax",
            "fnstsw (%rax)",
            "fwait",
            "fnop",
            "emms",
            "femms",
            "fldz",
            "fabs",
            "ftst",
            "fxam",
            "fincstp",
            "ffree %st(1)",
            "fnsave (%rax)",
            "frstor (%rax)",
            "fldenv (%rax)",
            "fnstenv (%rax)",
            "fxsave (%rax)",
            "xrstor (%rax)",
            "fisttpl (%rax)",
            "fcmove %st(1), %st",
            "fcomi %st(1), %st",
            "fucomp",
            "fprem1",
            "fsincos",
        ] {
            assert!(is_x87(&decoded(said)), "{said}");
        }
        for said in ["ldmxcsr (%rax)", "paddq %mm0, %mm1", "addsd %xmm0, %xmm1", "movq %rax, %mm0"] {
            assert!(!is_x87(&decoded(said)), "{said}");
        }
    }
}
