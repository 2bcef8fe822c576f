//! Known answers of key derivation and key transport, with their sources. Bytes are in hexadecimal.
#![forbid(unsafe_code)]

/// The examples of KDF_GOSTR3411_2012_256 and KDF_TREE_GOSTR3411_2012_256, which share their inputs.
#[derive(Clone, Copy, Debug)]
pub struct Derived {
    /// K_in.
    pub key: &'static str,
    /// The label.
    pub label: &'static str,
    /// The seed.
    pub seed: &'static str,
    /// KDF's 32 bytes.
    pub one: &'static str,
    /// KDF_TREE's 64 bytes, with R = 1.
    pub two: &'static str,
}

/// RFC 7836, appendix B, items 9 and 10; gost-engine's `test_tls12additional.c` has the second one too.
pub const TREE: Derived = Derived {
    key: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
    label: "26bdb878",
    seed: "af21434145656378",
    one: "a1aa5f7de402d7b3d323f2991c8d4534013137010a83754fd0af6d7cd4922ed9",
    two: "\
        22b6837845c6bef65ea71672b265831086d3c76aebe6dae91cad51d83f79d16b074c9330599d7f8d712fca54392f4ddd\
        e93751206b3584c8f43f9e6dc51531f9\
        ",
};

/// A key from a passphrase: PBKDF2 with HMAC_GOSTR3411_2012_512.
#[derive(Clone, Copy, Debug)]
pub struct Stretched {
    /// The source.
    pub source: &'static str,
    /// The passphrase.
    pub passphrase: &'static str,
    /// The salt.
    pub salt: &'static str,
    /// c.
    pub iterations: u32,
    /// The derived key.
    pub key: &'static str,
}

/// RFC 9337, appendix A, without its fourth example, whose 16,777,216 iterations take a minute.
pub const PBKDF2: &[Stretched] = &[
    Stretched {
        source: "RFC 9337, appendix A, example 1",
        passphrase: "70617373776f7264",
        salt: "73616c74",
        iterations: 1,
        key: "\
            64770af7f748c3b1c9ac831dbcfd85c26111b30a8a657ddc3056b80ca73e040d2854fd36811f6d825cc4ab66ec0a68a4\
            90a9e5cf5156b3a2b7eecddbf9a16b47\
            ",
    },
    Stretched {
        source: "RFC 9337, appendix A, example 2",
        passphrase: "70617373776f7264",
        salt: "73616c74",
        iterations: 2,
        key: "\
            5a585bafdfbb6e8830d6d68aa3b43ac00d2e4aebce01c9b31c2caed56f0236d4d34b2b8fbd2c4e89d54d46f50e47d45b\
            bac301571743119e8d3c42ba66d348de\
            ",
    },
    Stretched {
        source: "RFC 9337, appendix A, example 3",
        passphrase: "70617373776f7264",
        salt: "73616c74",
        iterations: 4096,
        key: "\
            e52deb9a2d2aaff4e2ac9d47a41f34c20376591c67807f0477e32549dc341bc7867c09841b6d58e29d0347c996301d55\
            df0d34e47cf68f4e3c2cdaf1d9ab86c3\
            ",
    },
    Stretched {
        source: "RFC 9337, appendix A, example 5",
        passphrase: "70617373776f726450415353574f524470617373776f7264",
        salt: "73616c7453414c5473616c7453414c5473616c7453414c5473616c7453414c5473616c74",
        iterations: 4096,
        key: "\
            b2d8f1245fc4d29274802057e4b54e0a0753aa22fc53760b301cf008679e58fe4bee9addcae99ba2b0b20f431a9c5e50\
            f395c89387d0945aedeca6eb4015dfc2bd2421ee9bb71183ba882ceebfef259f33f9e27dc6178cb89dc37428cf9cc52a\
            2baa2d3a\
            ",
    },
    Stretched {
        source: "RFC 9337, appendix A, example 6",
        passphrase: "7061737300776f7264",
        salt: "7361006c74",
        iterations: 4096,
        key: "\
            50df062885b69801a3c10248eb0a27ab6e522ffeb20c991c660f001475d73a4e167f782c18e97e92976d9c1d970831ea\
            78ccb879f67068cdac1910740844e830\
            ",
    },
];

/// A secret wrapped by KExp15 over Magma.
#[derive(Clone, Copy, Debug)]
pub struct Wrapped {
    /// The source.
    pub source: &'static str,
    /// K_Exp_MAC.
    pub mac: &'static str,
    /// K_Exp_ENC.
    pub encrypt: &'static str,
    /// The IV, 4 bytes.
    pub iv: &'static str,
    /// The secret.
    pub secret: &'static str,
    /// The secret and its check, encrypted.
    pub wrapped: &'static str,
}

/// Wrapped secrets.
pub const WRAPPED: &[Wrapped] = &[
    Wrapped {
        source: "RFC 9189, A.1.3.1",
        mac: "2d8ba8c84cb232ff41f10c3ad924134223254f71e5696d3d29c3e4c9daa6b293",
        encrypt: "849eb6340bffae6928a3c3e4ff92eccb1e8f0cf7a188368e6b748e52ea378b0c",
        iv: "214a6a29",
        secret: "a5576ce7924a24f58113808dbd9ef856f5bdc3b183ce5dadca36a53aa077651d",
        wrapped: "d7f0f0422367867b25fa4233a954f58bde92e9c9bbfb8816c99f15e6398722a0b2b7bfe8493e9a5c",
    },
    Wrapped {
        source: "R 1323565.1.017-2018, as gost-engine's test_tls12additional.c has it",
        mac: "08090a0b0c0d0e0f0001020304050607101112131415161718191a1b1c1d1e1f",
        encrypt: "202122232425262728292a2b2c2d2e2f38393a3b3c3d3e3f3031323334353637",
        iv: "67bed654",
        secret: "8899aabbccddeeff0011223344556677fedcba98765432100123456789abcdef",
        wrapped: "cfd5a12d5b81b6e1e99c916d07900c6ac12703fb3abded55567bf3742c899c755dafe7b42e3a8bd9",
    },
];

/// A leaf of TLSTREE.
#[derive(Clone, Copy, Debug)]
pub struct Leaf {
    /// The source.
    pub source: &'static str,
    /// The root.
    pub root: &'static str,
    /// The record's number.
    pub number: u64,
    /// The keys of the first and the second level, where the source has them.
    pub upper: Option<[&'static str; 2]>,
    /// The record's key.
    pub key: &'static str,
}

/// Leaves of the suite CTR_OMAC: key trees, and the keys of records.
pub const CTR_OMAC: &[Leaf] = &[
    Leaf {
        source: "RFC 9189, A.1.1.1",
        root: "00112233445566778899aabbcceeff0a112233445566778899aabbcceeff0a00",
        number: 0,
        upper: Some([
            "f35589f09bf801b1ca114273b95fd6c1392e78f9fb814da05a7cca089ec86542",
            "5137d5c4a6e6be42c440d10a95eea07f089e740d3890eb52652c0cb93f207bb4",
        ]),
        key: "19a76ed30f4d6d1f5b7263ec491ad83817c0b57d8a0356127140fb4f7425494d",
    },
    Leaf {
        source: "RFC 9189, A.1.1.1",
        root: "00112233445566778899aabbcceeff0a112233445566778899aabbcceeff0a00",
        number: 4095,
        upper: Some([
            "f35589f09bf801b1ca114273b95fd6c1392e78f9fb814da05a7cca089ec86542",
            "5137d5c4a6e6be42c440d10a95eea07f089e740d3890eb52652c0cb93f207bb4",
        ]),
        key: "19a76ed30f4d6d1f5b7263ec491ad83817c0b57d8a0356127140fb4f7425494d",
    },
    Leaf {
        source: "RFC 9189, A.1.1.1",
        root: "00112233445566778899aabbcceeff0a112233445566778899aabbcceeff0a00",
        number: 4096,
        upper: Some([
            "f35589f09bf801b1ca114273b95fd6c1392e78f9fb814da05a7cca089ec86542",
            "5137d5c4a6e6be42c440d10a95eea07f089e740d3890eb52652c0cb93f207bb4",
        ]),
        key: "fb30ee53cfcf89d748fc0c72ef160b8b53cbbbfd031282b026214ab2e07758ff",
    },
    Leaf {
        source: "RFC 9189, A.1.1.1",
        root: "00112233445566778899aabbcceeff0a112233445566778899aabbcceeff0a00",
        number: 33554431,
        upper: Some([
            "f35589f09bf801b1ca114273b95fd6c1392e78f9fb814da05a7cca089ec86542",
            "5137d5c4a6e6be42c440d10a95eea07f089e740d3890eb52652c0cb93f207bb4",
        ]),
        key: "b85b36dc2282326bc035c572dc93f18d83aa0174f394209a513bb374dc0935ae",
    },
    Leaf {
        source: "RFC 9189, A.1.1.1",
        root: "00112233445566778899aabbcceeff0a112233445566778899aabbcceeff0a00",
        number: 33554432,
        upper: Some([
            "f35589f09bf801b1ca114273b95fd6c1392e78f9fb814da05a7cca089ec86542",
            "3fea5938da2bf8ddc47ec1dc556189667902be420df4c37daf21753bcb1dc7f3",
        ]),
        key: "0fd7c09efdf8e81573eeccf86e4b95e3af7f34dab1177cfd7db97b6da906408a",
    },
    Leaf {
        source: "RFC 9189, A.1.1.1",
        root: "00112233445566778899aabbcceeff0a112233445566778899aabbcceeff0a00",
        number: 274877906943,
        upper: Some([
            "f35589f09bf801b1ca114273b95fd6c1392e78f9fb814da05a7cca089ec86542",
            "abf3a537983a1b9840066de68a49bf25977ee5c3f52d333e3c220f1d15c50893",
        ]),
        key: "480f9972baf25d4c369a96af91bca4553f79d8f0c5618b19fd44cfdc57fa3733",
    },
    Leaf {
        source: "RFC 9189, A.1.1.1",
        root: "00112233445566778899aabbcceeff0a112233445566778899aabbcceeff0a00",
        number: 274877906944,
        upper: Some([
            "15600d9e8fa68554cf152dc74fbc425117b03e0976bb28ea9824c3b70f28cbd8",
            "6cc28eb0932472125c7ad3f80973b3c8c4137da573bc171a24edd4a371f1f873",
        ]),
        key: "2528c1c6a8f0927bf2be27bb78d27f2146d65593b0c7173a06cb9d88df923265",
    },
    Leaf {
        source: "RFC 9189, A.1.2.1, K_ENC",
        root: "2233445566778899aabbcceeff0a001133445566778899aabbcceeff0a001122",
        number: 0,
        upper: None,
        key: "58afbe9a4c3198aaabaa2692c419f1797c9b92deb3cc7446b363577113f0fb56",
    },
    Leaf {
        source: "RFC 9189, A.1.2.1, K_MAC",
        root: "00112233445566778899aabbcceeff0a112233445566778899aabbcceeff0a00",
        number: 4095,
        upper: None,
        key: "19a76ed30f4d6d1f5b7263ec491ad83817c0b57d8a0356127140fb4f7425494d",
    },
    Leaf {
        source: "RFC 9189, A.1.2.1, K_ENC",
        root: "2233445566778899aabbcceeff0a001133445566778899aabbcceeff0a001122",
        number: 4095,
        upper: None,
        key: "58afbe9a4c3198aaabaa2692c419f1797c9b92deb3cc7446b363577113f0fb56",
    },
    Leaf {
        source: "RFC 9189, A.1.2.1, K_MAC",
        root: "00112233445566778899aabbcceeff0a112233445566778899aabbcceeff0a00",
        number: 4096,
        upper: None,
        key: "fb30ee53cfcf89d748fc0c72ef160b8b53cbbbfd031282b026214ab2e07758ff",
    },
    Leaf {
        source: "RFC 9189, A.1.2.1, K_ENC",
        root: "2233445566778899aabbcceeff0a001133445566778899aabbcceeff0a001122",
        number: 4096,
        upper: None,
        key: "edf2fd02477160238309002d1d57df9fd2ed18d64566c76f4bf03d3abf7bbb1e",
    },
];

/// Leaves of the suite MGM_L.
pub const MGM_L: &[Leaf] = &[Leaf {
    source: "gost-engine's test_tls12additional.c",
    root: "df66601eddd64e961dfc7dd0212ef225c00533e6daa4ad24185ebeb224b546b8",
    number: 7,
    upper: None,
    key: "bd009ffc04a0529e6078eba5a07ade74937ff3a1ab75f7ae05190478519b6df3",
}];
