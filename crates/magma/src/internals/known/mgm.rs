//! Known answers of MGM, with their sources.
#![forbid(unsafe_code)]

/// A sealed message. All in hexadecimal.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// The source.
    pub source: &'static str,
    /// The cipher's key, 32 bytes.
    pub key: &'static str,
    /// The nonce, 8 bytes.
    pub nonce: &'static str,
    /// Associated data.
    pub aad: &'static str,
    /// Data.
    pub plaintext: &'static str,
    /// Data, encrypted.
    pub ciphertext: &'static str,
    /// The tag, 8 bytes.
    pub tag: &'static str,
}

/// The intermediate values of a message. All in hexadecimal, blocks one after another.
#[derive(Clone, Copy, Debug)]
pub struct Inside {
    /// The message's index in [`MESSAGES`].
    pub message: usize,
    /// Y_1, the first counter of the encryption.
    pub y: &'static str,
    /// Z_1, the first counter of the authentication.
    pub z: &'static str,
    /// E(Y_1), E(Y_2), ...
    pub gamma: &'static str,
    /// H_1, H_2, ...
    pub factors: &'static str,
    /// The sum of products after each block of associated data and ciphertext.
    pub sums: &'static str,
    /// The sum with the block of lengths, which is encrypted to the tag.
    pub sum: &'static str,
}

/// Sealed messages. R 1323565.1.026-2019 has the first one too, as gost-engine's `test_mgm.c` quotes it.
pub const MESSAGES: &[Message] = &[
    Message {
        source: "RFC 9058, A.2.1",
        key: "ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
        nonce: "12def06b3c130a59",
        aad: "01010101010101010202020202020202030303030303030304040404040404040505050505050505ea",
        plaintext: "\
            ffeeddccbbaa998811223344556677008899aabbcceeff0a001122334455667799aabbcceeff0a001122334455667788\
            aabbcceeff0a00112233445566778899aabbcc\
            ",
        ciphertext: "\
            c795066c5f9ea03b85113342459185ae1f2e00d6bf2b785d940470b8bb9c8e7d9a5dd3731f7ddc70ec27cb0ace6fa576\
            70f65c646abb75d547aa37c3bcb5c34e03bb9c\
            ",
        tag: "a7928069aa10fd10",
    },
    Message {
        source: "RFC 9058, A.2.2",
        key: "99aabbccddeeff0011223344556677fedcba98765432100123456789abcdef88",
        nonce: "0077665544332211",
        aad: "",
        plaintext: "22334455667700ff",
        ciphertext: "6a95e1426b259d4e",
        tag: "334ee270450bec9e",
    },
    Message {
        source: "RFC 9227, appendix A, item 3",
        key: "256521e270b74a164dfc26e6bf0cca765e9d41027d4b7b19762b1cc901dcde7f",
        nonce: "00000000cf366312",
        aad: "c8c2b28d00000001",
        plaintext: "\
            4500003c242d00007f01edd40a6f0ac50a6f0a1d0800de5b02006d006162636465666768696a6b6c6d6e6f7071727374\
            75767761626364656667686901020204\
            ",
        ciphertext: "\
            fa0840332c4f3fc9644d8c2c4a917e0cd86f8e61040387646bb9dfbd91503f4af5d2426949d35a229e1e0efc99acee9e\
            3243e23ba4d11e845c91a7191552cce8\
            ",
        tag: "5f4afa8b02940f5c",
    },
    Message {
        source: "RFC 9227, appendix A, item 4",
        key: "20e046d409839b23f066a50a7a065b4a39244f0e29ef1e6f2e5d2e1355f5da08",
        nonce: "00000000cf366312",
        aad: "c8c2b28d00000010",
        plaintext: "\
            4500003c244000007f01edc10a6f0ac50a6f0a1d0800cf5b02007c006162636465666768696a6b6c6d6e6f7071727374\
            75767761626364656667686901020204\
            ",
        ciphertext: "\
            7a714841a534b758936a8eab269140a825a7f35db9e4371fe76c999c9b88db721dc759f656b5b3eab6b14d6bd77a071d\
            4b9378bd08976c33ed9a0191bffea1dd\
            ",
        tag: "dd5d509afdb80998",
    },
    Message {
        source: "RFC 9227, appendix A, item 7",
        key: "4c614599a0a067f19487240ae100e1b7eaf23edaf87e387350861c683ba40446",
        nonce: "0000000088798f29",
        aad: "\
            3e40699c0000000100000000000000004500003c0e0800007f0103fa0a6f0ac50a6f0a1d0800365c0200150061626364\
            65666768696a6b6c6d6e6f707172737475767761626364656667686901020204\
            ",
        plaintext: "",
        ciphertext: "",
        tag: "4dd4258a253595df",
    },
    Message {
        source: "RFC 9227, appendix A, item 8",
        key: "b4f3f90dc487fab8c4afd0eb4549f2f0e43632b67919372e1e9609eaf0b8e228",
        nonce: "0000000088798f29",
        aad: "\
            3e40699c0000000600000000010000004500003c0e1300007f0103ef0a6f0ac50a6f0a1d0800315c02001a0061626364\
            65666768696a6b6c6d6e6f707172737475767761626364656667686901020204\
            ",
        plaintext: "",
        ciphertext: "",
        tag: "8484a92330a0b196",
    },
];

/// The intermediate values of the messages of RFC 9058.
pub const INSIDES: &[Inside] = &[
    Inside {
        message: 0,
        y: "5623890162de31bf",
        z: "2b073f0494f372a0",
        gamma: "\
            387bdba0e43439b39433000610f7f2ae97b7aa6d73c587579415528bffc9e80a03f768bff182d670fd05f84e9b09d2fe\
            da4d908a95b175c465997396dac24bd7a900504a148dee26\
            ",
        factors: "\
            708a78191cdd22aa6f02cc464b2fa0a39f81f226fd196f05b9c2ac9be5b5dff974b5ec96551bf8887eb021a4035b04c3\
            c2a9c3a8704d9bb0f5d505a87b8383b5f795e75fdeb8933c65a1a3e680f081451c74a5764cb0d595dc8447a514e783e7\
            a7e3afe004ee16e3a5aabb0b7980d0716e104cc933525c5d8311b6024aa966c1\
            ",
        sums: "\
            d6bb5bea81931262dd1c824e917849a505892217f65adac7d1db9b7fc49e7c975645f6b5185cb71a3fc2c2e6fbeed04d\
            15471fb5cd8e6c02125678961d40e0936ef40ab0c15f2048a464a708ff45142260944e05d0857514ee98b9b50ff783e8\
            c0390fa228af6dcb73e06e07ef37cdcc2f40690aeb53f539\
            ",
        sum: "73cef44bae6bdb61",
    },
    Inside {
        message: 1,
        y: "5b2a7e604f9fbb95",
        z: "597354787e52e6eb",
        gamma: "48a6a5170d529db1",
        factors: "ece3f9da118c7d95310c0dacc9d04d93",
        sums: "25d0e4207b6bf63d",
        sum: "66d38f120f789249",
    },
];
