//! Known answers of whole packets under derived keys, with their sources: records of TLS and packets of ESP. Bytes are in hexadecimal.
#![forbid(unsafe_code)]

/// A record of TLS, from the root of the tree to the bytes on the wire.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// The source.
    pub source: &'static str,
    /// The root of the tree of MAC keys.
    pub mac_root: &'static str,
    /// The root of the tree of encryption keys.
    pub encrypt_root: &'static str,
    /// The record's number.
    pub number: u64,
    /// The header of the plaintext.
    pub header: &'static str,
    /// The length of the data, which is zeros.
    pub zeros: usize,
    /// The MAC over number, header and data.
    pub mac: &'static str,
    /// The record as sent, header first; only its beginning, where the source prints no more.
    pub sent: &'static str,
}

/// Records of the suite CTR_OMAC (RFC 9189, A.1.2.1), where the connection's IV is zero.
pub const RECORDS: &[Record] = &[
    Record {
        source: "RFC 9189, A.1.2.1",
        mac_root: "00112233445566778899aabbcceeff0a112233445566778899aabbcceeff0a00",
        encrypt_root: "2233445566778899aabbcceeff0a001133445566778899aabbcceeff0a001122",
        number: 0,
        header: "1703030007",
        zeros: 7,
        mac: "f33eb6896fece286",
        sent: "170303000f9b420da86faf367f051443ce9c1072",
    },
    Record {
        source: "RFC 9189, A.1.2.1",
        mac_root: "00112233445566778899aabbcceeff0a112233445566778899aabbcceeff0a00",
        encrypt_root: "2233445566778899aabbcceeff0a001133445566778899aabbcceeff0a001122",
        number: 4095,
        header: "1703030400",
        zeros: 1024,
        mac: "58d3bb608fbc98b8",
        sent: "\
            1703030408b711438b16201f3c49339521c9c8ca7566d4c20fd33e581f8007dc76043e2b35c8e84bb25508276613596f\
            ",
    },
    Record {
        source: "RFC 9189, A.1.2.1",
        mac_root: "00112233445566778899aabbcceeff0a112233445566778899aabbcceeff0a00",
        encrypt_root: "2233445566778899aabbcceeff0a001133445566778899aabbcceeff0a001122",
        number: 4096,
        header: "1703030800",
        zeros: 2048,
        mac: "5055a26abe196381",
        sent: "\
            17030308089995260703471deda2e655b6b393835e338b1ed00edd2247a2fb88fbb7a8948062088af32caeb6aa2c4f2a\
            ",
    },
];

/// A record sealed by MGM under a key of TLSTREE.
#[derive(Clone, Copy, Debug)]
pub struct Sealed {
    /// The source.
    pub source: &'static str,
    /// The root of the tree.
    pub root: &'static str,
    /// The record's number.
    pub number: u64,
    /// The nonce.
    pub nonce: &'static str,
    /// Associated data.
    pub aad: &'static str,
    /// Data.
    pub plaintext: &'static str,
    /// Data, encrypted.
    pub ciphertext: &'static str,
    /// The tag.
    pub tag: &'static str,
}

/// A record of the suite MGM_L.
pub const SEALED: Sealed = Sealed {
    source: "gost-engine's test_mgm.c",
    root: "ebd271de19fee18bb1998f69af5b6ae18958e8d3702f12fbb5b03f6fd691fefa",
    number: 0,
    nonce: "18fb038dbf7241e6",
    aad: "170303000b",
    plaintext: "010015",
    ciphertext: "464aee",
    tag: "ad391d97987169f3",
};

/// The key and the nonce of a packet of ESP, from the transform key and the packet's IV.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// The source.
    pub source: &'static str,
    /// The transform key: root and salt.
    pub transform: &'static str,
    /// The IV: the path in the tree, and the packet's number.
    pub iv: &'static str,
    /// K_msg.
    pub key: &'static str,
    /// MGM's nonce.
    pub nonce: &'static str,
}

/// Packets of ESP. Their sealed messages are in [`super::mgm::MESSAGES`].
pub const PACKETS: &[Packet] = &[
    Packet {
        source: "RFC 9227, appendix A, item 3",
        transform: "5b50bf3378870238f3ca740fd124ba6c2283ef589be6f46a894aa35d5f06b203cf366312",
        iv: "0000000000000000",
        key: "256521e270b74a164dfc26e6bf0cca765e9d41027d4b7b19762b1cc901dcde7f",
        nonce: "00000000cf366312",
    },
    Packet {
        source: "RFC 9227, appendix A, item 4",
        transform: "5b50bf3378870238f3ca740fd124ba6c2283ef589be6f46a894aa35d5f06b203cf366312",
        iv: "0000010001000000",
        key: "20e046d409839b23f066a50a7a065b4a39244f0e29ef1e6f2e5d2e1355f5da08",
        nonce: "00000000cf366312",
    },
    Packet {
        source: "RFC 9227, appendix A, item 7",
        transform: "d065b530fa20b824c7570c1d862ae3392c1c076dfada6975744a07a8857dbd3088798f29",
        iv: "0000000000000000",
        key: "4c614599a0a067f19487240ae100e1b7eaf23edaf87e387350861c683ba40446",
        nonce: "0000000088798f29",
    },
    Packet {
        source: "RFC 9227, appendix A, item 8",
        transform: "d065b530fa20b824c7570c1d862ae3392c1c076dfada6975744a07a8857dbd3088798f29",
        iv: "0000000001000000",
        key: "b4f3f90dc487fab8c4afd0eb4549f2f0e43632b67919372e1e9609eaf0b8e228",
        nonce: "0000000088798f29",
    },
];
