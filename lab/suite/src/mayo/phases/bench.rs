//! The phases of an operation, one by one, for a caller with a clock.
#![forbid(unsafe_code)]

use lanework_cpu::memory::{Block, bytes, bytes_mut};
use lanework_mayo::internals::known::Maker;
use lanework_mayo::internals::operands::{Finish, Keygen, Matrices, Sign, Solve, Verify, Whip};
use lanework_mayo::internals::{SEED_PK_BYTES, SLACK, Scheme, SetKernels, Sizes};

/// What a key owner or a verifier does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Seed to public key.
    Keygen,
    /// Seed and message to signature.
    Sign,
    /// Public key, message and signature to yes or no.
    Verify,
}

impl Operation {
    /// All three.
    pub const ALL: [Operation; 3] = [Operation::Keygen, Operation::Sign, Operation::Verify];

    /// The name in subjects' paths.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Keygen => "keygen",
            Operation::Sign => "sign",
            Operation::Verify => "verify",
        }
    }

    /// Its phases, in order. The rest is unpacking, packing and wiping.
    #[must_use]
    pub const fn phases(self) -> &'static [Phase] {
        match self {
            Operation::Keygen => &[Phase::Hashing, Phase::Expansion, Phase::Products],
            _ => &[Phase::Hashing, Phase::Expansion, Phase::Products, Phase::System],
        }
    }
}

/// A part of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// SHAKE256: seeds, digest, salt, target, vinegar.
    Hashing,
    /// AES-128 in counter mode: P1 and P2, and in round 3 the linear term.
    Expansion,
    /// The products of P with O, with the vinegar vectors or with the signature.
    Products,
    /// Signing: whipping, elimination and the last step to s. Verification: whipping.
    System,
}

impl Phase {
    /// The name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Hashing => "hashing",
            Phase::Expansion => "expansion",
            Phase::Products => "products",
            Phase::System => "whipping and elimination",
        }
    }
}

/// One key, one message of 32 bytes and one signature on one backend, with the buffers of every phase.
pub struct Bench {
    on: Scheme,
    set: &'static Sizes,
    seed: Vec<u8>,
    public_key: Vec<u8>,
    message: [u8; 32],
    signature: Vec<u8>,
    p: Vec<Block>,
    p3: Vec<Block>,
    lambda: Vec<Block>,
    m: Vec<Block>,
    u: Vec<Block>,
    scratch: Vec<Block>,
    o: Vec<u8>,
    vinegar: Vec<u8>,
    r: Vec<u8>,
    x: Vec<u8>,
    s: Vec<u8>,
    public_s: Vec<u8>,
    t: Vec<u8>,
    hash: Vec<u8>,
    made: Vec<u8>,
}

impl Bench {
    /// Makes the key and everything else. The inputs are the same for every backend.
    #[must_use]
    pub fn new(on: Scheme) -> Bench {
        let set = on.kernels.sizes();
        let blocks = |bytes: usize| vec![Block::ZERO; bytes.div_ceil(64)];
        let mb = set.m_bytes();
        let elements =
            |len: usize, salt: usize| (0..len).map(|i| (i * 7 + i / 13 + salt) as u8 % 16).collect();
        let mut bench = Bench {
            on,
            set,
            seed: (0u8..).take(set.secret_key_bytes()).collect(),
            public_key: vec![0; set.public_key_bytes()],
            message: [0x5a; 32],
            signature: vec![0; set.signature_bytes()],
            p: blocks(set.p12_bytes() + SLACK),
            p3: blocks(set.p3_vecs() * mb + SLACK),
            lambda: blocks(if set.linear_term { set.n * mb + SLACK } else { 0 }),
            m: vec![Block::ZERO; SetKernels::padded_blocks(set, set.k * set.o)],
            u: vec![Block::ZERO; SetKernels::padded_blocks(set, set.pairs())],
            scratch: vec![Block::ZERO; on.kernels.scratch_blocks()],
            o: elements(set.v() * set.o, 1),
            vinegar: elements(set.k * set.v(), 2),
            r: elements(set.k * set.o, 3),
            x: vec![0; set.k * set.o],
            s: vec![0; set.k * set.n],
            public_s: elements(set.k * set.n, 4),
            t: elements(mb, 5),
            hash: vec![0; set.k * set.v_bytes() + set.r_bytes() + SEED_PK_BYTES + set.o_bytes()],
            made: Vec::new(),
        };
        bench.whole(Operation::Keygen);
        bench.whole(Operation::Sign);
        for phase in [Phase::Expansion, Phase::Products] {
            bench.run(Operation::Sign, phase);
        }
        let p3 = &bench.public_key[SEED_PK_BYTES..];
        bytes_mut(&mut bench.p3)[..p3.len()].copy_from_slice(p3);
        bench
    }

    /// The whole operation, as a caller runs it; verification says whether the signature is valid.
    pub fn whole(&mut self, operation: Operation) -> bool {
        match operation {
            Operation::Keygen => {
                self.public_key = self.on.public_key(&self.seed);
                true
            }
            Operation::Sign => {
                let randomizer = [0x33; 64];
                let made = self.on.sign(&self.seed, &self.message, &randomizer[..self.set.salt_bytes]);
                self.signature = made.unwrap_or_default();
                !self.signature.is_empty()
            }
            Operation::Verify => self.on.verify(&self.public_key, &self.message, &self.signature),
        }
    }

    /// One phase of one attempt.
    pub fn run(&mut self, operation: Operation, phase: Phase) {
        match phase {
            Phase::Hashing => self.hash(operation),
            Phase::Expansion => self.expand(operation),
            Phase::Products => self.multiply(operation),
            Phase::System => self.solve(operation),
        }
    }

    fn hash(&mut self, operation: Operation) {
        let (symmetric, set) = (self.on.symmetric, self.set);
        let seed_bytes = SEED_PK_BYTES + set.o_bytes();
        if operation != Operation::Verify {
            symmetric.shake256(&[&self.seed], &mut self.hash[..seed_bytes]);
        }
        if operation == Operation::Keygen {
            return;
        }
        let mut digest = [0; 64];
        let digest = &mut digest[..set.digest_bytes];
        symmetric.shake256(&[&self.message], digest);
        let mut salt = [0; 64];
        let salt = &mut salt[..set.salt_bytes];
        let mut target = [0; 128];
        let target = &mut target[..set.m_bytes() + if set.linear_term { 32 } else { 0 }];
        if operation == Operation::Sign {
            symmetric.shake256(&[digest, &self.seed, &self.seed], salt);
            let vinegar = &mut self.hash[..set.k * set.v_bytes() + set.r_bytes()];
            symmetric.shake256(&[digest, salt, &self.seed, &[0]], vinegar);
        }
        symmetric.shake256(&[digest, salt], target);
    }

    fn expand(&mut self, operation: Operation) {
        let (symmetric, set) = (self.on.symmetric, self.set);
        let mut seed = [0; SEED_PK_BYTES];
        seed.copy_from_slice(&self.public_key[..SEED_PK_BYTES]);
        symmetric.aes128_ctr(&seed, 0, &mut bytes_mut(&mut self.p)[..set.p12_bytes()]);
        if set.linear_term && operation != Operation::Keygen {
            let lambda = &mut bytes_mut(&mut self.lambda)[..set.n * set.m_bytes()];
            symmetric.aes128_ctr_xor(&seed, &[0x77; 16], lambda);
        }
    }

    fn multiply(&mut self, operation: Operation) {
        let (kernels, set) = (self.on.kernels, self.set);
        let lambda = if set.linear_term { bytes(&self.lambda) } else { &[] };
        let p = bytes(&self.p);
        self.made.clear();
        match operation {
            Operation::Keygen => {
                self.made.resize(set.p3_vecs() * set.m_bytes(), 0);
                kernels.keygen(Keygen { p, o: &self.o, p3: &mut self.made, scratch: &mut self.scratch });
            }
            Operation::Sign => {
                let (m, u) = (&mut self.m, &mut self.u);
                kernels.sign(Sign {
                    key: p,
                    o: &self.o,
                    vinegar: &self.vinegar,
                    lambda,
                    m,
                    u,
                    scratch: &mut self.scratch,
                });
            }
            Operation::Verify => {
                let (p3, s) = (bytes(&self.p3), &self.public_s);
                kernels.verify(Verify {
                    key: Matrices { p, p3 },
                    s,
                    lambda,
                    u: &mut self.u,
                    scratch: &mut self.scratch,
                });
            }
        }
    }

    fn solve(&mut self, operation: Operation) {
        let kernels = self.on.kernels;
        if operation == Operation::Verify {
            kernels.whip(Whip { u: &self.u, y: &mut self.t });
        } else {
            // A system without full rank takes as long; its result is not used.
            let _ = kernels.solve(Solve {
                m: &self.m,
                u: &self.u,
                t: &self.t,
                r: &self.r,
                x: &mut self.x,
                scratch: &mut self.scratch,
            });
            kernels.finish(Finish { o: &self.o, vinegar: &self.vinegar, x: &self.x, s: &mut self.s });
        }
    }

    /// The last products' result: P3, or M and the u, or the u alone, with their padding.
    #[must_use]
    pub fn products(&self) -> Vec<u8> {
        if self.made.is_empty() { [bytes(&self.m), bytes(&self.u)].concat() } else { self.made.clone() }
    }
}
