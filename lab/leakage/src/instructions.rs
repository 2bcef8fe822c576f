//! Instructions whose time does not depend on the data that they work on.
//!
//! Intel publishes for its processors which instructions have "data operand independent timing" (Data Operand Independent
//! Timing ISA Guidance, document 768873, and the list that goes with it); AMD makes no such promise. [`class`] lists those
//! that compilers and kernels use in integer, AES, carry-less and vector code: moves, logic, additions, multiplications,
//! shifts, comparisons, selections and permutations of integers. It is a whitelist: an instruction that is not on it is refused, even where
//! it may be harmless. Refused on purpose are divisions and square roots, all floating-point arithmetic, gathers,
//! scatters, packed stores, string instructions, PEXT, PDEP and the counting of bits (the latter are not on Intel's list).
//!
//! Intel names instructions one by one. Some that do no more than those it names are missing: rotations, double shifts, scans,
//! moves and shuffles by their floating-point names, the byte permutations of VBMI. They are listed here, in `BEYOND`, because
//! their time is constant on all processors that were ever measured; no vendor promises it. Intel's list was compared entry by
//! entry, as the tool doit-enforcer (CharlieQiu2017, commit 91ea953) has it: everything else listed here is on it too.
//!
//! An instruction that is not on the list is excused where the registers that it works on held the same in all compared
//! cases. It then works on public lengths, as a division in the allocator does. A `cmpxchg` is excused likewise, whatever
//! is in memory: it compares that with a register, and the program's way after it shows whether they are equal.
#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::sync::LazyLock;

use lanework_trace::iced_x86::{FlowControl, Instruction, Mnemonic};

/// What the list says about an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Its time does not depend on its data.
    Listed,
    /// A jump, call or return: it has no time but its way, which comparing runs checks.
    Flow,
    /// It is not on the list.
    Unlisted,
}

/// What the list says about an instruction.
#[must_use]
pub fn class(i: &Instruction) -> Class {
    if matches!(i.mnemonic(), Mnemonic::Syscall | Mnemonic::Sysenter) {
        return Class::Unlisted;
    }
    match i.flow_control() {
        FlowControl::Next => {}
        FlowControl::UnconditionalBranch
        | FlowControl::IndirectBranch
        | FlowControl::ConditionalBranch
        | FlowControl::Return
        | FlowControl::Call
        | FlowControl::IndirectCall => return Class::Flow,
        _ => return Class::Unlisted,
    }
    // The time of string instructions depends on the length, that of gathers on the number of elements.
    if i.is_string_instruction() || i.is_vsib() || !LISTED.contains(&i.mnemonic()) {
        return Class::Unlisted;
    }
    Class::Listed
}

static LISTED: LazyLock<HashSet<Mnemonic>> = LazyLock::new(|| {
    let names: HashSet<&str> = LISTS.iter().flat_map(|list| list.split_ascii_whitespace()).collect();
    Mnemonic::values().filter(|m| names.contains(name(*m).as_str())).collect()
});

fn name(m: Mnemonic) -> String {
    format!("{m:?}").to_ascii_lowercase()
}

const LISTS: [&str; 4] = [GENERAL, VECTORS, MOVES, MASKS];

/// On general registers. Conditional moves and sets are data, not ways; fences and prefetches order and fetch by addresses,
/// which comparing runs checks, and so does the number of a bit of memory move one. On processors before 2008 the time of bit scans depended on their data.
const GENERAL: &str = "\
    mov movzx movsx movsxd movbe lea xchg push pop bswap nop endbr64 add adc adcx adox sub sbb inc dec neg cmp and \
    andn or xor not test mul imul mulx shl sal shr sar shld shrd shlx shrx sarx rol ror rorx rcl rcr bt btc btr bts \
    bextr bzhi blsi blsmsk blsr bsf bsr tzcnt lzcnt cbw cwd cwde cdq cdqe cqo clc stc cmc cld lahf sahf cmova cmovae \
    cmovb cmovbe cmove cmovg cmovge cmovl cmovle cmovne cmovno cmovnp cmovns cmovo cmovp cmovs seta setae setb setbe \
    sete setg setge setl setle setne setno setnp setns seto setp sets prefetcht0 prefetcht1 prefetcht2 prefetchnta \
    lfence mfence sfence";

/// On vector registers: integers, logic (of floating-point lanes too, where it is also bitwise), AES, GF(2^8), carry-less
/// products.
const VECTORS: &str = "\
    paddsb paddsw paddusb paddusw psubsb psubsw psubusb psubusw vpaddsb vpaddsw vpaddusb vpaddusw vpsubsb vpsubsw \
    vpsubusb vpsubusw \
    paddb paddw paddd paddq psubb psubw psubd psubq pmulld pmullw pmulhw pmulhuw pmulhrsw pmuludq pmuldq pmaddwd \
    pmaddubsw psadbw pavgb pavgw pand pandn por pxor andps andnps orps xorps andpd andnpd orpd xorpd pcmpeqb pcmpeqw \
    pcmpeqd pcmpeqq pcmpgtb pcmpgtw pcmpgtd pcmpgtq ptest psllw pslld psllq pslldq psraw psrad psrlw psrld psrlq \
    psrldq pminub pminuw pminud pminsb pminsw pminsd pmaxub pmaxuw pmaxud pmaxsb pmaxsw pmaxsd pabsb pabsw pabsd \
    psignb psignw psignd aesenc aesenclast aesdec aesdeclast aesimc aeskeygenassist pclmulqdq gf2p8affineqb \
    gf2p8affineinvqb gf2p8mulb vpaddb vpaddw vpaddd vpaddq vpsubb vpsubw vpsubd vpsubq vpmulld vpmullw vpmullq \
    vpmulhw vpmulhuw vpmulhrsw vpmuludq vpmuldq vpmaddwd vpmaddubsw vpsadbw vpavgb vpavgw vpmadd52luq vpmadd52huq \
    vpmultishiftqb vpand vpandn vpor vpxor vpandd vpandq vpandnd vpandnq vpord vporq vpxord vpxorq vpternlogd \
    vpternlogq vandps vandnps vorps vxorps vandpd vandnpd vorpd vxorpd vpcmpeqb vpcmpeqw vpcmpeqd vpcmpeqq vpcmpgtb \
    vpcmpgtw vpcmpgtd vpcmpgtq vpcmpb vpcmpub vpcmpw vpcmpuw vpcmpd vpcmpud vpcmpq vpcmpuq vptest vptestmb vptestmw \
    vptestmd vptestmq vptestnmb vptestnmw vptestnmd vptestnmq vpsllw vpslld vpsllq vpslldq vpsraw vpsrad vpsraq \
    vpsrlw vpsrld vpsrlq vpsrldq vpsllvw vpsllvd vpsllvq vpsravw vpsravd vpsravq vpsrlvw vpsrlvd vpsrlvq vprold \
    vprolq vprolvd vprolvq vprord vprorq vprorvd vprorvq vpshldw vpshldd vpshldq vpshrdw vpshrdd vpshrdq vpshldvw \
    vpshldvd vpshldvq vpshrdvw vpshrdvd vpshrdvq vpminub vpminuw vpminud vpminuq vpminsb vpminsw vpminsd vpminsq \
    vpmaxub vpmaxuw vpmaxud vpmaxuq vpmaxsb vpmaxsw vpmaxsd vpmaxsq vpabsb vpabsw vpabsd vpabsq vpsignb vpsignw \
    vpsignd vaesenc vaesenclast vaesdec vaesdeclast vaesimc vaeskeygenassist vpclmulqdq vgf2p8affineqb \
    vgf2p8affineinvqb vgf2p8mulb";

/// Loads, stores, permutations, selections and conversions of vectors. An expansion moves lanes by its mask; from memory it reads as
/// many elements as the mask has, which comparing runs checks as part of the addresses.
const MOVES: &str = "\
    movd movq movdqa movdqu lddqu movaps movups movapd movupd movss movsd movlps movhps movlpd movhpd movlhps \
    movhlps movddup movshdup movsldup movntdq movntdqa movnti movmskps movmskpd pmovmskb pshufb pshufd pshufhw \
    pshuflw shufps shufpd palignr punpcklbw punpcklwd punpckldq punpcklqdq punpckhbw punpckhwd punpckhdq punpckhqdq \
    unpcklps unpckhps unpcklpd unpckhpd packuswb packusdw packsswb packssdw pblendw pblendvb blendps blendpd \
    blendvps blendvpd pinsrb pinsrw pinsrd pinsrq pextrb pextrw pextrd pextrq insertps extractps pmovzxbw pmovzxbd \
    pmovzxbq pmovzxwd pmovzxwq pmovzxdq pmovsxbw pmovsxbd pmovsxbq pmovsxwd pmovsxwq pmovsxdq vmovd vmovq vmovdqa \
    vmovdqu vmovdqa32 vmovdqa64 vmovdqu8 vmovdqu16 vmovdqu32 vmovdqu64 vlddqu vmovaps vmovups vmovapd vmovupd vmovss \
    vmovsd vmovlps vmovhps vmovlpd vmovhpd vmovlhps vmovhlps vmovddup vmovshdup vmovsldup vmovntdq vmovntdqa \
    vmovmskps vmovmskpd vpmovmskb vzeroupper vzeroall vpshufb vpshufd vpshufhw vpshuflw vshufps vshufpd vpalignr \
    valignd valignq vpunpcklbw vpunpcklwd vpunpckldq vpunpcklqdq vpunpckhbw vpunpckhwd vpunpckhdq vpunpckhqdq \
    vunpcklps vunpckhps vunpcklpd vunpckhpd vpackuswb vpackusdw vpacksswb vpackssdw vpblendw vpblendd vpblendvb \
    vblendps vblendpd vblendvps vblendvpd vpblendmb vpblendmw vpblendmd vpblendmq vpinsrb vpinsrw vpinsrd vpinsrq \
    vpextrb vpextrw vpextrd vpextrq vinsertps vextractps vpermb vpermw vpermd vpermq vpermps vpermpd vpermilps \
    vpermilpd vpermi2b vpermi2w vpermi2d vpermi2q vpermt2b vpermt2w vpermt2d vpermt2q vperm2i128 vperm2f128 \
    vshufi32x4 vshufi64x2 vshuff32x4 vshuff64x2 vpbroadcastb vpbroadcastw vpbroadcastd vpbroadcastq vbroadcastss \
    vbroadcastsd vbroadcasti128 vbroadcastf128 vbroadcasti32x2 vbroadcasti32x4 vbroadcasti32x8 vbroadcasti64x2 \
    vbroadcasti64x4 vbroadcastf32x4 vbroadcastf64x2 vbroadcastf64x4 vinserti128 vinserti32x4 vinserti64x2 \
    vinserti32x8 vinserti64x4 vinsertf128 vinsertf32x4 vinsertf64x2 vinsertf64x4 vextracti128 vextracti32x4 \
    vextracti64x2 vextracti32x8 vextracti64x4 vextractf128 vextractf32x4 vextractf64x2 vextractf64x4 vpmovzxbw \
    vpmovzxbd vpmovzxbq vpmovzxwd vpmovzxwq vpmovzxdq vpmovsxbw vpmovsxbd vpmovsxbq vpmovsxwd vpmovsxwq vpmovsxdq \
    vpexpandd vpexpandq vpmovwb vpmovdb vpmovdw vpmovqb vpmovqw vpmovqd";

/// On mask registers.
const MASKS: &str = "\
    kmovb kmovw kmovd kmovq kandb kandw kandd kandq kandnb kandnw kandnd kandnq korb korw kord korq kxorb kxorw \
    kxord kxorq kxnorb kxnorw kxnord kxnorq knotb knotw knotd knotq kaddb kaddw kaddd kaddq kshiftlb kshiftlw \
    kshiftld kshiftlq kshiftrb kshiftrw kshiftrd kshiftrq kunpckbw kunpckwd kunpckdq ktestb ktestw ktestd ktestq \
    kortestb kortestw kortestd kortestq vpmovm2b vpmovm2w vpmovm2d vpmovm2q vpmovb2m vpmovw2m vpmovd2m vpmovq2m";

/// Entries of [`LISTS`] that Intel's list does not name.
const BEYOND: &str = "\
    andnpd andnps andpd andps bextr blendpd blendps blendvpd blendvps blsi blsmsk blsr bsf bsr bswap bzhi cbw cdq cdqe \
    clc cld cmc cqo cwd cwde endbr64 extractps insertps lahf lfence lzcnt mfence movapd movaps movbe movhlps movhpd \
    movhps movlhps movlpd movlps movmskpd movmskps movnti movss movupd movups nop orpd orps pmaxsd pminsd prefetchnta \
    prefetcht0 prefetcht1 prefetcht2 rcl rcr rol ror rorx sahf sarx sfence shld shrd shufpd shufps stc tzcnt \
    unpckhpd unpckhps unpcklpd unpcklps vandnpd vandnps vandpd vandps vblendpd vblendps vblendvpd vblendvps vextractps \
    vinsertps vmovapd vmovaps vmovhlps vmovhpd vmovhps vmovlhps vmovlpd vmovlps vmovmskpd vmovmskps vmovss vmovupd \
    vmovups vorpd vorps vpcmpd vpermb vpermi2b vpermt2b vpexpandd vpexpandq vpmaxsd vpminsd vpmultishiftqb vshufpd \
    vshufps vunpckhpd vunpckhps vunpcklpd vunpcklps vxorpd vxorps xchg xorpd xorps";

static UNPROMISED: LazyLock<HashSet<Mnemonic>> = LazyLock::new(|| {
    let names: HashSet<&str> = BEYOND.split_ascii_whitespace().collect();
    Mnemonic::values().filter(|m| names.contains(name(*m).as_str())).collect()
});

/// Whether Intel's own list names the instruction. [`class`] lists some that it does not.
#[must_use]
pub fn promised(i: &Instruction) -> bool {
    class(i) == Class::Listed && !UNPROMISED.contains(&i.mnemonic())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanework_trace::iced_x86::{Decoder, DecoderOptions};

    fn of(bytes: &[u8]) -> Class {
        let i = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
        assert!(!i.is_invalid() && i.len() == bytes.len(), "{bytes:02x?} is {i}");
        class(&i)
    }

    #[test]
    fn what_depends_on_data_is_not_listed() {
        let refused: [(&str, &[u8]); 11] = [
            ("div rbx", &[0x48, 0xf7, 0xf3]),
            ("idiv ebx", &[0xf7, 0xfb]),
            ("rep movsb", &[0xf3, 0xa4]),
            ("pext rax, rax, rax", &[0xc4, 0xe2, 0xfa, 0xf5, 0xc0]),
            ("pdep rax, rax, rax", &[0xc4, 0xe2, 0xfb, 0xf5, 0xc0]),
            ("popcnt rax, rax", &[0xf3, 0x48, 0x0f, 0xb8, 0xc0]),
            ("divsd xmm0, xmm1", &[0xf2, 0x0f, 0x5e, 0xc1]),
            ("mulsd xmm0, xmm1", &[0xf2, 0x0f, 0x59, 0xc1]),
            ("vpgatherdd ymm0, [rax+ymm1*4], ymm2", &[0xc4, 0xe2, 0x6d, 0x90, 0x04, 0x88]),
            ("vpcompressb [rax]{k1}, zmm0", &[0x62, 0xf2, 0x7d, 0x49, 0x63, 0x00]),
            ("rdrand rax", &[0x48, 0x0f, 0xc7, 0xf0]),
        ];
        for (text, bytes) in refused {
            assert_eq!(of(bytes), Class::Unlisted, "{text}");
        }
    }

    #[test]
    fn every_name_in_the_lists_is_an_instruction() {
        let known: HashSet<String> = Mnemonic::values().map(name).collect();
        let named: Vec<&str> = LISTS.iter().flat_map(|list| list.split_ascii_whitespace()).collect();
        for one in &named {
            assert!(known.contains(*one), "{one}");
        }
        assert_eq!(LISTED.len(), named.iter().collect::<HashSet<_>>().len());
        assert!(LISTED.len() > 400);
    }

    #[test]
    fn what_is_beyond_the_published_list_is_told_apart() {
        // All of them are listed here; the other 520 are on Intel's list too.
        assert_eq!(UNPROMISED.len(), BEYOND.split_ascii_whitespace().count());
        assert!(UNPROMISED.is_subset(&LISTED));
        assert_eq!(LISTED.len() - UNPROMISED.len(), 520);
        let promise = |bytes: &[u8]| promised(&Decoder::new(64, bytes, DecoderOptions::NONE).decode());
        assert!(promise(&[0x48, 0x01, 0xd8]), "add rax, rbx");
        assert!(!promise(&[0x48, 0xc1, 0xc0, 0x05]), "rol rax, 5");
        assert!(!promise(&[0x48, 0xf7, 0xf3]), "div rbx");
        assert!(!promise(&[0xc3]), "ret");
    }

    #[test]
    fn plain_instructions_are_listed_and_jumps_are_ways() {
        for (text, bytes) in [
            ("add rax, rbx", &[0x48, 0x01, 0xd8][..]),
            ("mulx rax, rbx, rcx", &[0xc4, 0xe2, 0xe3, 0xf6, 0xc1]),
            ("vpshufb ymm0, ymm0, ymm1", &[0xc4, 0xe2, 0x7d, 0x00, 0xc1]),
            ("vpternlogq zmm0, zmm1, zmm2, 0x96", &[0x62, 0xf3, 0xf5, 0x48, 0x25, 0xc2, 0x96]),
            ("vpexpandq zmm0{k1}{z}, zmm0", &[0x62, 0xf2, 0xfd, 0xc9, 0x89, 0xc0]),
            ("cmove rax, rbx", &[0x48, 0x0f, 0x44, 0xc3]),
        ] {
            assert_eq!(of(bytes), Class::Listed, "{text}");
        }
        for (text, bytes) in [("je", &[0x74, 0x00][..]), ("ret", &[0xc3]), ("call rax", &[0xff, 0xd0])] {
            assert_eq!(of(bytes), Class::Flow, "{text}");
        }
        assert_eq!(of(&[0x0f, 0x05]), Class::Unlisted, "syscall");
    }
}
