//! GOST 28147-89 in its own modes.
#![forbid(unsafe_code)]

use super::{Answer, Cipher, Mode, Plain, Sealed};
use crate::sbox::Sbox;

const CSP: &str = "gost-engine's test_gost2814789.c, computed there with CryptoPro CSP 3.6R2";

/// GOST 28147-89 with key meshing, under all S-box sets.
#[rustfmt::skip]
pub static LEGACY: &[Answer] = &[
    Answer {
        name: "RFC 9189 A.2.1 record 0, IMIT",
        source: "RFC 9189 A.2.1",
        cipher: Cipher::Gost28147(Sbox::Z),
        mode: Mode::Imit,
        key: "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        iv: "",
        plain: Plain { before: "00000000000000001703030007", zeros: 7, after: "" },
        sealed: Sealed { head: "300134a1", tail: "" },
    },
    Answer {
        name: "RFC 9189 A.2.1 records 0 and 1, IMIT",
        source: "RFC 9189 A.2.1",
        cipher: Cipher::Gost28147(Sbox::Z),
        mode: Mode::Imit,
        key: "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        iv: "",
        plain: Plain { before: "\
        000000000000000017030300070000000000000000000000000000011703030800", zeros: 2048, after: "" },
        sealed: Sealed { head: "f7c38b8a", tail: "" },
    },
    Answer {
        name: "RFC 9189 A.2.1 records 0 and 1, CNT",
        source: "RFC 9189 A.2.1",
        cipher: Cipher::Gost28147(Sbox::Z),
        mode: Mode::Cnt,
        key: "0000000000000000000000000000000000000000000000000000000000000000",
        iv: "0000000000000000",
        plain: Plain { before: "00000000000000300134a1", zeros: 2048, after: "f7c38b8a" },
        sealed: Sealed { head: "\
        8671cdbf3c1aae0f624b04cfaa0cb42fa5a47a133d73b9f2c0b04f8ca25552f856bcbe6a58fa", tail: "3ee2c76fa230a044be21dc8e1a96f9a8881fad834596968447" },
    },
    Answer {
        name: "testecb1",
        source: CSP,
        cipher: Cipher::Gost28147(Sbox::CryptoProA),
        mode: Mode::Ecb,
        key: "bbf1edd320af8a628e11c8a951ccbe81477b41a16af67f05e8512f9e01f8cf49",
        iv: "",
        plain: Plain { before: "743d76f91bee353ca25c3b10eb64cff5", zeros: 0, after: "" },
        sealed: Sealed { head: "c373909535580863cb68859677e8fba9", tail: "" },
    },
    Answer {
        name: "testcfb1",
        source: CSP,
        cipher: Cipher::Gost28147(Sbox::CryptoProA),
        mode: Mode::CfbMeshing,
        key: "8d5a2c83a7c70a61d61b34b51fdf42686671a35d874cfd84993663b61ed60dad",
        iv: "46606f0d8834235a",
        plain: Plain { before: "d2fdf83ac1b439232eaacc980a02da33", zeros: 0, after: "" },
        sealed: Sealed { head: "88b7751674a5ee2d14fe9167d05ccc40", tail: "" },
    },
    Answer {
        name: "testcnt1",
        source: CSP,
        cipher: Cipher::Gost28147(Sbox::CryptoProA),
        mode: Mode::Cnt,
        key: "599f84bac3f3d2f160e1e3f26a961af99c48b24ebcbbbf7cd8f3accd968d286a",
        iv: "8dafa8d158ed058d",
        plain: Plain { before: "90a23966ae01b9a3524ec8ed6cdd8830", zeros: 0, after: "" },
        sealed: Sealed { head: "6e7262cce3593690833afea91bc9bece", tail: "" },
    },
    Answer {
        name: "testimit1",
        source: CSP,
        cipher: Cipher::Gost28147(Sbox::CryptoProA),
        mode: Mode::Imit,
        key: "9d05b79e90cad00a2cdad22ef4e86f5cf5dc37681985b3bfaa18c1c3050a91a2",
        iv: "",
        plain: Plain { before: "b5a1f0e3ce2f021d676194345c41e36e", zeros: 0, after: "" },
        sealed: Sealed { head: "f81f08a3", tail: "" },
    },
    Answer {
        name: "testcfb2",
        source: CSP,
        cipher: Cipher::Gost28147(Sbox::CryptoProB),
        mode: Mode::CfbMeshing,
        key: "480c741b026b55d5b66dd71d4048056b6deb3c290f848023ee0d4777e3fe61c9",
        iv: "1f3f821e0dd81e22",
        plain: Plain { before: "\
        8c9c4435fbe9a5a3a0ae285691108e1ed2bb185381270da6685936c581629a8e7d50f16f976229ec8051e37d\
        6cc407952863dcb4b92db813b105b5f9eb75374ef7bf51f1988643c4e43d3ea762ec4159e0bdfbb6fdece077\
        13d25990a1b8976b3d8b7dfc9dca827332700a7403c60c267f56f09db2eb7140d7c3b1a7c51e2017b3501d8a\
        6e19cbbe20862bd61cfdb4b75d9ab3e37d157a35019f5d65894b34c6f4813f7830cfe915909af9deba63d019\
        14663cb9a4b2849402cfce20cf76e7c548f7693a5decaf41a7126483f5991e9eb2ab861600238ee6d9800b6d\
        c593e25c8cd85e5aae4a85fd7601ea30f37834107251bc9f76ce1fd48f335034c74d7bcf91637d829ea12345\
        f545ac987a48ff64d55947de2b3ffaec50e081608bc3fc809817c7a3c2573dab9167f5c4ab92c8d63b6b3fff\
        156bcf536502f174caa9be24d2f0b726a8d76ded90367b3e41a97fa31bf443c551be2859e94526493832f8f3\
        926e30ccb0a0f90114c8bad9f02a29e2529a76953a1632ecf410ecee47007019e472356644532da2f3aa7e8a\
        3313cdc8bf0e409000e442c30984e16617a2af03ab6ba1ecfb177281fe9a9ff4b2331fae0cd16aae19b8afec\
        e3ea00f8ac87075f6db0ac6b224836bf2218b0039f6c704536f06bc6c2a5722cd8e0273dec5607057d83a165\
        7d415bcd7724e5aa7647d050f6e7b559753127efd8a64e7fb840b1df5314edf1685ffc3f02db05eb31e42c7f\
        32b5708e7585a45c162337f21079cbdcf81c25c2a13d9c336cedc3e7f30287824efbacb32dfcf80d1d4a39d4\
        b309bbe925c7ec6a877284ed12601964eb162a5b107627ff7be4aee5a404027fbb0ab5f405a5561c53317a93\
        ba1615ab6260fcde72366e28af980de6f4de60a77e060786f394b66d0d93a6bc607033ac3fa1a84a2061b6b5\
        43a3155a00be76985772ab7a0e1893823a18786e717b784f7e8cde7a62b50a7c451d16d5c38c9b25b45090cd\
        9693ad0fd443cb490ffc5a31f419b7d4eb4d4058d03bc8e04a542fdb22c3297b40906143d37ee2302b483cce\
        9093b18b3196656d578b9d4d53f0831ce5a19d55e3bf7eca1a746614cc4743d9bbef977db76efff122f8102d\
        3fcd4996d90911b833d0239afa16cb502657245c0ebaf03f372fa3f71857484895cfef87672ae9b68a21367f\
        ff486c463557f2bc48678f632378112bc208de51e88b9229f99a9eaded0feba2d24092d4de629576fd6e3cbf\
        c0d70de51ba4c718e158a456ef2e171b75cbbcf92a9571a71d7fe77363056b194cf42214c45988669286615c\
        6aaeec58ffc9f244d4a2f598eb5f09bc8abf3cb43eb120054496790a40927f9dd1afbc90950a81d4a7c6b8e0\
        e439301d79c0e5fab4e963b409723b3ed9f6d91021187ee5ad81d7d582d08c3b3895f89201a9920070d1a788\
        771f3aebb5e4f59dc73786b212463419728cf58cf67898e07cd3f4", zeros: 0, after: "" },
        sealed: Sealed { head: "\
        23c67f20a12358bc7b05db2115cf9641c788ef765c49db42bff3c0f5bd5dd98eaf3df4e4da88bdbc475d7607\
        c95f541d1d6aa12e18d66084021837929215ab21ee21cc716e51d92bcc81973feb4599b81bdaff90d341069c\
        3ffbe4b2dcc9030da7aed77d02b832abf365a3656c4ee4a25e9eeecdde79366b1be13cdf10ad4f02e114aa09\
        b40b76eb69382002cb8ec0dfca4874c331ad422c519bd06ac136d721dfb045baca7f352028bbc176fd435d23\
        7d31841a974d83aa7ef1c4e683ac0defef3ca47c48e4c8ca0d7dea7c45d77350251d01c4021acde0385ba85a\
        169a105974d719c6f3b517f6598d62af44e8dce9c176f1d0bd29d7ec1dac57db1a3fd8f66eb6e6df36e789ce\
        5635431c7d57790ed8f4d7a70dc68f916667820f49c9c56581a1395a539f02a5d53622a8a81c370e7646dfbd\
        6adbfc1bbd10b8b1bc724c584ada6d6600da7a66a0e73b39a3f70507fa214bc794c0d37b19025d4a10f1c20f\
        196827c77dbf5503577daf77ae802f7ae61f4bdc1518c062a1e8d91c9e8c9639c1c488f70ce104846851cef1\
        90da7f76c8c088ef8e15253e7be479b5662d9cd113dad0d546d58d461807eed8c964e3be0e6827099626f6e2\
        19613ff458270aebce7cb66892e7123b31d448df358df486422a154be8191f26659ba8da4b791f8ee6137e49\
        8fc1cedc5e6474ce0278e0cfa0ed5e3174d1d0b4ee7019143c8f16a6cf12931588eb91657698fda19430ba43\
        62654004779ed6ab8b0d9380505fa27620a7d69c271527bca55abfe9928205a841e9b560d5c0d74bad38b2e9\
        d1e5515f2478249a23d2c248bd0ef137729187b04ebd996b2c01b67969ec0cede53f50647cb9dde19281b5d0\
        cb1783868bea4f9308bc220cefe80df59e23e1f9b76b450bcba9b64d2825ba3e86f275475d9d6bf68a055873\
        3d00defd69b16116f52eb09f316a00b9ef716347a3cae040a87e0204fee5ce4873e394cfe2ff297ef632bbb7\
        5512217a9c75040cb47cb03d40b3119a7a9a13fb77a75168f705473b0f525ce6c2993a37545c4f2ba7010874\
        bc91e3e2fe6594fd3d18e0f062edc210829c587fb2a3878a74d9c1fb842817c72bcb531f4e8a82fcb43fc147\
        25f321dc4c2d08fae70f03a968de6b41a0f9416c574d3a0eea51ca9f97117df68e886367c96513ca38ed35be\
        f427a9fca9e6c3408608397237eeb2870996b740873692c15d6a2c43ca25c835372db5a9274450f26d227541\
        772adbb18c6d05e8c999c708f9148f78a98fc25a7a65c5d886bb72696b6b45835bb1f7cd1673eee98085fe8e\
        e1ae538fdebe488b59eff67ed8b5a847c04e1558cad32ff86ca63d784d7a54d610e5cc05e229b58607397d78\
        8e5a8f834ce73d683ee502e6644f5eb44977f0c0fa6fc8fb9f846f55fb305e8993a9f3a6a3d726bbd8a8d995\
        1dfefcd7a893662f045306647f3129aeb79fbac46d68d12432f411", tail: "" },
    },
    Answer {
        name: "testcfb3",
        source: CSP,
        cipher: Cipher::Gost28147(Sbox::CryptoProC),
        mode: Mode::CfbMeshing,
        key: "77c3458ef642e7048efc08e47096d6059359026d6f97cae9cf89444bde6c221d",
        iv: "437c3e8e2f2a0098",
        plain: Plain { before: "079c91be", zeros: 0, after: "" },
        sealed: Sealed { head: "19358134", tail: "" },
    },
    Answer {
        name: "testcfb4",
        source: CSP,
        cipher: Cipher::Gost28147(Sbox::CryptoProD),
        mode: Mode::CfbMeshing,
        key: "389fe837ff9c5d29fc4855a087eae84020875bb2011555a7e32dcb3dd6590473",
        iv: "c5a2d21f2fdfb8eb",
        plain: Plain { before: "2f31d883b420e86eda", zeros: 0, after: "" },
        sealed: Sealed { head: "6da4ed40088871ad16", tail: "" },
    },
    Answer {
        name: "test5Mcfb",
        source: CSP,
        cipher: Cipher::Gost28147(Sbox::CryptoProA),
        mode: Mode::CfbMeshing,
        key: "6158445a41f6c70f6bdb51916af681308ca798dd38358a6085b4f0f943a27d9a",
        iv: "0000000000000000",
        plain: Plain { before: "", zeros: 5242888, after: "" },
        sealed: Sealed { head: "", tail: "1c16a0e96394fe3837a79b70252ed600" },
    },
    Answer {
        name: "testcnt2",
        source: CSP,
        cipher: Cipher::Gost28147(Sbox::CryptoProA),
        mode: Mode::Cnt,
        key: "1b5ddb77cff9ec955ecc679f5d28ad4a27f432c6b2cbb1456a88140c9b9b5f48",
        iv: "71588ce155f4f6b3",
        plain: Plain { before: "\
        3d0b69f7a8e4fc99222eeed16312fea89dcb6c4d488ce8bd8b60f1bf7be379d52b259713ef35daf4bc77ceea\
        e93fa4b601d5732958dad76717ace4752f5723ac9621c7622df732b5445f72b15fba1b1edb4a098c9261a2b0\
        4968e5b3a28f134bf54d84daaba0b6d15a6319e8a209f6766f9b480a155db720219a2eb96dfa1ec20eef15ab\
        5901fe4390f262ca4a9a4838ab6f9d21b3ada76046e3efd0e31dc5e1b8a1e29920c576ccaa8aa94555a07800\
        64decf5bdf2648cdba8ab5fbfd4ad5c4e043a67190a48bca2e887bacb2dcf201cbda6e91272844889ad212f1\
        a6f5b761ce7962523ce61473d1419250bddc3bd0a7118c3ae42df252d32f7c8e54904e23aeb3a0f3257e66aa\
        0f6f817277bbd347e805ffe15bc93750334917afab1de115f2e5985e2d051f0d5597edff5ee00fc39cbd82c2\
        06be4566ae33be2848e92d1ae6658edf7603734bc08071f9acbaa0b0191a0ad43512887605758f7cb5f01975\
        6d05cb0dbc8de9f0d4db3c3c298e2c321df7b649cfdb63ee3cfa33736fe4974e2fc94c5c65feeafbc6ddc11c\
        473ff4502fde1b5b0b16cab64644f2c10da11da6dbf03db16c0531858e74aef23926f7c1e74cdd9d40b8f3c5\
        c216646baadb4b825cd302d38f26798db0787019580cb43188441c916ff45239a8f5c01bfef20e4bac0ac27e\
        9c9beb5d4e4f42d8710a9727031496a63d04ea9f1414274cd9a2895f654ae19d2cb8f8d48f2a5736cc069c2c\
        c51316dffcae2216a82b716f1db347543f2d0a689f2ef690d8a12109d497b97b7f9b6aedd1f0e3b628c76282\
        00c938a18278ce87c853ac4f2e31b9507f36004a32e6d8bb59450e911b38a9bcb95e6c6a9c03011cdee81f1e\
        e3de25a25679e1bd58c493e6d08a4d08abf7aac37dc1ee6837bc780b19682b2b2e6dc46faa3bc619cbf158b9\
        608545ae5297ba24321372166e7bc198acb1edb4cc6ccf45fc5089808e7aa4d364506337c96cf1c43dfbde5a\
        5ca82135e62e8c2a3c1217799a0d2e79eb671f2bf86ecac1fa45189edf6ae6cbe95cc309af935813bf908487\
        75d682288de72fa3fb97742a730482067669b10b19fcaeb3dd2ae5c105d88095229071fcc29242fdf170b468\
        88a49e0a244013c8a2564f39e606f1dcf5130ead9c8bafe9e38872ffa06dda0870b92e83c5bb32a574c7fb7b\
        76af02bb2bb85e6502fe0ea099ce013b35e1b022e594bddd8ebbf675bfbfee7ab158b481b8393eb61ededa1b\
        d5f7dd7d659caa5693b8af4853c722e41cdfe979b42089cc2a792c09be78cfccf290d665c529fcda69fcc0d6\
        7099613f6002d81222c834c63bb3c233a15c8f4cd15272f242058e181f16dab853a15f01321b90b3539bd085\
        612d17ed0aa4a52709757cbc30f75e599a07968428864ba7223528c7ed0dc3ce98cc2decd498098e525f2b9a\
        13be991673d11f81e5a20878cb0c20d4a5ea4b5b955a929a52", zeros: 0, after: "" },
        sealed: Sealed { head: "\
        8ecd8fc8ace115482dae248ac7fbba0f1d8a95a243efcbdc5957a7c70ee3e2b90d862962cb834d070c40d47b\
        2ecababf4a603b3198c88847d982abfc8f48e246abd3a1ab8a05228cf4ec9a1e76ab1a60d9256bb856e5b2ea\
        10f36204325eaa3b7b57bc3b8b4347f2d5037e5101ff7728ca90a3fe7e2e7016751844f01b8505eae321f726\
        86763c679dfcbc107f77e4edd312f883001f4b9295925cf35af3b7d0a95ff218c46662c1840e66e8807d1ff0\
        ba019b71ae93cc2754349abdcaee5209929db0d5d9ba2fb996dcfabdceea1a7b9a1d13a711e29a64f6d3eec6\
        33b76eef259e1e7ce31f2c6ea9c0f8c1bf3bf834039ba1405b0c3c09669d63e2e2048f06847468b25c3b4cad\
        0b3f03b3078a64a73656263966dae96d1bd588e85caf5a4c49f7f5b778f0deeccd16239e8c13be6b6f9b07e5\
        bbcc3a1b6f43dfff462aae4719189a2509c924400c4ba7da5e0deefa62458ecc2f23081d92f0fe820fd71160\
        7e0b0b75f4f53bc0a4e872a5b6fa5aad5a4f39b5a212960a3284b2a10668565797a37b2261765d301a31ab99\
        06c51a96cfcf14ffb2c4cc2bbf0c9d918f795bbca96b916ab4935c7b5dc28a75c0c108fa99f94d5e0c066460\
        a9014a340f3384956930c11c36f8fc3023b271e5524d121ac9beeec9cb0185f3db30f941a940b0062977cdc5\
        ec5802488353446ad2ca05d85a08eba9f4e6c79dd57b740b31b7a5577c7afd1a0ed79741bfddc6196c778c18\
        525783ba7125ee39bbe243a014dc0e84b42bde3ee536b7a2929805b896e5d08c089335c281e0fc5971e24449\
        5ddafb9caa709f43a8a5d967d98fa31ebe0eecdf122b6ae71c1217e7c46d50c9527ad5e87fbc0715acdb9366\
        b1f0a77b2fe9ecd047695987f14c3e4b9b117913e496f656046e0b33fc40f6c7c143b1bf0eb387fd0b1c6346\
        3ad3a0175925946c9c3d0c81ce82724228f9376a6de412f421aaf7fe2755401a14c3395bbf63c25f101f1425\
        d0cef3144813a50b4d38cf0d34c00a11b4b572c84bc26fe79d93f7dfb843727eda3e201fbc212ace00fa969f\
        3de58896ef2984df6c1c96d85847aa92f307e5fbafea957e0b71cd810fb70a598f314dd1c3f32f705c591897\
        af77955eaf400612816186084ebc8946072e5b10aa12f0a784e29a08f1de59e30e474bffc3c918af959c672a\
        de8a7a9904c4b8974c04297105dab3d6db6c71e6e803bf947dde3dc844fa7d62b43603ee365264b4856dd578\
        f06f672d0ee02c889b55192940f68c12bb2c839640c036f577ff708c75920bad059b7ea2fca9d164768213ba\
        225e330e2670a9be7428f5e2c496ee3abc97a62c2ae0648d35c61acaf492fac3f11f98e44388693a09bf63e5\
        96290b9b6223148a95e41c5c0aa9c5b96f4f2b256f741e18d5fe277d3f6e552c67e6deb5ccc02dffc4e40621\
        a5c8d3d66ca1c3fb8892b11d90e135059b296dbaf1f41e232e", tail: "" },
    },
    Answer {
        name: "test5Mcnt",
        source: CSP,
        cipher: Cipher::Gost28147(Sbox::CryptoProA),
        mode: Mode::Cnt,
        key: "075265e7caa3ca45cf3a051d3803530c2231ba994f9b6a1b7e099d4eb5c9842e",
        iv: "0000000000000000",
        plain: Plain { before: "", zeros: 5242888, after: "" },
        sealed: Sealed { head: "", tail: "3d050757c0758997d69449111dd091ee" },
    },
    Answer {
        name: "testimit2",
        source: CSP,
        cipher: Cipher::Gost28147(Sbox::CryptoProA),
        mode: Mode::Imit,
        key: "80d9a0dc21f9304075fe491b9e7190917888216039e7c92bfb551df4dd2b0a01",
        iv: "",
        plain: Plain { before: "\
        d6cf31969ca1fbd68da3dd01d988c02fbc46c73ae42186968de2cab637a2e1a87ea7792ea456757f3e558b43\
        ae65dfaa42b600a661030dd34102272395799b3481a986b5a790e2aec42fc38e325613fa4d4e9f15757e74dc\
        322dee4d67709f62b9c4db2484cc167bda22f7c5f3933573c6031c77a5f27656b495d47e0d20c66eee8f2548\
        ff7e013ab41faa35c033589cb5ba654bd35114ec61cee4ba49ba3932abce8172ceabedd4d219878592fa6434\
        d886f48a083cdeee97929269ba9b5f7a03c15d43028cbed2467281407d6898450b54271caf8042e4d5d4e4a2\
        98078f03f52c8c88ca5adee49fb15f82ff20675285844fc8fea79eae1cfab875d3f79f0dda2de6cc866ba414\
        65c3f915bc87f5ae8c10d4ce5b9ce2dd4203098747ed5dd07a694cfa437dbf07856aee68e67a57b2208d80f2\
        916f5c078ce46a4990858b7729561c5ea93fab8b79a36f6b34cb61f6e692d1489e11a282c04e23d2150d8dff\
        fa179d81b8bcd75b08812040c03c068b1a880b4b7b31f5d44e09d14d0d7f45d10935bace65ddf2b8fb7abcc4\
        4bc875da6bce3de894cc236fb03b4f7d07b90f62927eda7050ced328121100eb8d637078a87b76abc640c04e\
        80ddf0fe8372564c094cf17272862631c3c2dc8ec7f435ec17066347498847afb3384f7e4495b5bb1dbd5a91\
        5bd01adf0d0b50d8e20ec5002d5b2919aa2b64c540314811bc04d1cf6df9a52f4ac982fa59e1fcab1c33260a\
        5feff206d8d37e1658167873aebaebe53db20ab3322d14a4fa3f1f43f97ba9439818940707e51934a8165f71\
        67aa29e5faf083061d9dfcfefe8cb5b2a9e7a04060b6719eab5b83b90c2b582380099e5d947d4076a916969e\
        83e00deca0ec762ab7a0ffb8504c5bc68b0a652efeb4409a01d8c6a3ab99a2c50c08c4b7ee4d1dc40815d0db\
        aa634f31eb149743bdc19408e6de439f950b967e7f3c68ba6fc4c9352bc40eda1f916864633473be5775b9ed\
        f72d3b0521932848969597a0d27d78bb6a498f76557463b9c5361225bf03828ff0f680bb33b4f417271cf34c\
        10a3e4d155d968214e5a8367bff83c7d4e62d328a7266fe9eec20b2d0384b1ffd6681fb6f2e40fda2dee5f6e\
        21c8e1fcad6b0e047dafc23ba5689b0cf356f3da8dc87d39dcd599c60110ce421bac48dc97780aecb38f4735\
        a36a64b28e63692266ae2ee088f9403cc9a25761f6adf0dc90563f069b7dbdc28102abb81509884aff2f31bf\
        5efa6a7ef6c5a7f7d5ab55acae0d8c8d7f4b25bb32ff11332e373769961517b11749e09a9cd95b8d58a31d92\
        87f880b9bd5aec40e1003360e486166d6181f2286aa7ce3f95ae43cae13f81747e1c471795c660da7477d99f\
        fa92b4bee1239818956303134c1a2d41cde484f7e638efff95b2e87c8f58b5b5ed277f3c18abbe7f4fe23515\
        71b76f85389b88f69c8d43b5589ef2d196beb7ad1aa098", zeros: 0, after: "" },
        sealed: Sealed { head: "90f2119a", tail: "" },
    },
    Answer {
        name: "testimit3",
        source: CSP,
        cipher: Cipher::Gost28147(Sbox::CryptoProA),
        mode: Mode::Imit,
        key: "a9b637cc6d9b2f25b0df47045068b0274127586abd0a6e502fc6fcc03e2942a5",
        iv: "",
        plain: Plain { before: "1debe6790a5900e68e5c", zeros: 0, after: "" },
        sealed: Sealed { head: "317c16e4", tail: "" },
    },
    Answer {
        name: "testimit4",
        source: CSP,
        cipher: Cipher::Gost28147(Sbox::CryptoProA),
        mode: Mode::Imit,
        key: "b06c48230a6ef4ec27980123a7d8bf6089efade88f79148c185c9adaef0bdda0",
        iv: "",
        plain: Plain { before: "ef068f14c904", zeros: 0, after: "" },
        sealed: Sealed { head: "e972aebf", tail: "" },
    },
    Answer {
        name: "testimit5",
        source: CSP,
        cipher: Cipher::Gost28147(Sbox::CryptoProB),
        mode: Mode::Imit,
        key: "33d3ef0119950e15a16975ae562717796347ab629d4af034d31e6974ec3148fc",
        iv: "",
        plain: Plain { before: "02f8ec2b4d1fbc7c6e47e387227541a7", zeros: 0, after: "" },
        sealed: Sealed { head: "f5551f28", tail: "" },
    },
    Answer {
        name: "testimit6",
        source: CSP,
        cipher: Cipher::Gost28147(Sbox::CryptoProA),
        mode: Mode::Imit,
        key: "423581910ba999ffd943f8c619551f2f2d4540201e1d327ab1076b4f4590d980",
        iv: "",
        plain: Plain { before: "f3b229d27a370312", zeros: 0, after: "" },
        sealed: Sealed { head: "6e15fae8", tail: "" },
    },
    Answer {
        name: "testimit7",
        source: CSP,
        cipher: Cipher::Gost28147(Sbox::CryptoProA),
        mode: Mode::Imit,
        key: "26cbb9f00c629faa4a1db6300901568966d4e40efef6106b6ce8043ae3614b19",
        iv: "",
        plain: Plain { before: "", zeros: 0, after: "" },
        sealed: Sealed { head: "00000000", tail: "" },
    },
    Answer {
        name: "test5Mimit",
        source: CSP,
        cipher: Cipher::Gost28147(Sbox::CryptoProA),
        mode: Mode::Imit,
        key: "aa8584cd6528e1dbb8201943e036351019c3705b27c19d8475a3c649468f7c4e",
        iv: "",
        plain: Plain { before: "", zeros: 5242880, after: "" },
        sealed: Sealed { head: "2ae623c6", tail: "" },
    },
];
