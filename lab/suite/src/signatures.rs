//! MAYO beside other signature schemes: `signatures/keygen`, `signatures/sign` and `signatures/verify`, one race each.
//!
//! The question is which scheme to use, so each comes with all its builds, and a reader takes the fastest. Variants are `mayo1` and
//! its siblings, ours in the newest round, and `<scheme>@<peer>`. Messages have 32 bytes. Every scheme starts from its encoded keys,
//! except Ed25519, whose key OpenSSL holds as an object. Randomness comes from the peers' cheap stream on both sides.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::path::Path;

use lanework_mayo::internals::check as checks;
use lanework_mayo::{Engine, Params, Round, SecretKey, Set, SignOptions};
use lanework_peers::ed25519::{self, Ed25519, OPENSSL};
use lanework_peers::flavour::{Flavour, LIBOQS_13, Tuning};
use lanework_peers::{FLAVOURS, Peers, SetId, SignaturePeer, seed_random};
use lanework_race::gate::{Gate, GateRow};
use lanework_race::machine::PeerBuild;
use lanework_race::subject::{Facts, Runnable, Subject, Unavailable, Variant, work};

use crate::mayo::{self, Filler, Operation};
use crate::{Context, row};

/// Each is one race.
const OPERATIONS: [Operation; 3] = [Operation::Keygen, Operation::Sign, Operation::Verify];

/// Different messages that an operation goes through in turn. Fewer than MAYO's own races have, since hash-based signatures take
/// milliseconds.
const POOL: usize = 16;

/// Ours, by the name of the variant.
fn ours() -> [(String, &'static Params); 4] {
    Set::ALL.map(|set| (format!("mayo{}", set.number()), Params::of(Round::DEFAULT, set)))
}

/// The builds that can be the fastest: all of the release but the plain one.
fn builds_of_liboqs() -> impl Iterator<Item = &'static Flavour> {
    FLAVOURS.iter().filter(|f| *f.release == LIBOQS_13 && f.tuning != Tuning::Generic)
}

/// How OpenSSL was built, for the machine card. Those of liboqs are among MAYO's.
#[must_use]
pub fn builds() -> Vec<PeerBuild> {
    let build = |version| PeerBuild {
        name: OPENSSL.to_owned(),
        version,
        compiler: "not known: built by others".to_owned(),
        flags: String::new(),
    };
    ed25519::version().map(build).into_iter().collect()
}

/// The three races; none without peers.
#[must_use]
pub fn subjects(context: &Context) -> Vec<Subject> {
    let Some(dir) = context.peers.as_deref() else { return Vec::new() };
    OPERATIONS
        .into_iter()
        .map(|operation| {
            let inner = context.clone();
            let gate = Gate::new(move || Ok(gate_rows(&inner)));
            let mut variants = ours().into_iter().map(|(name, params)| {
                let context = context.clone();
                Variant::new(name, move || {
                    mayo::one_by_one(engine(&context)?, mayo::fastest(&context.cpu)?, params, operation)
                })
            });
            let first = variants.next().unwrap_or_else(|| {
                Variant::new("none", || Err(Unavailable::because("MAYO has no parameter set")))
            });
            let mut subject = Subject::new(format!("signatures/{}", operation.name()), gate, first);
            for variant in variants {
                subject = subject.with(variant);
            }
            for set in LIBOQS_13.others {
                for flavour in builds_of_liboqs() {
                    let dir = dir.to_owned();
                    let name = format!("{}@{}", set.name, flavour.name);
                    subject = subject.with(Variant::new(name, move || {
                        raced(Theirs::new(&dir, flavour.name, set.name)?, operation)
                    }));
                }
            }
            let openssl = move || raced(ByOpenSsl::new()?, operation);
            subject.with(Variant::new(format!("ed25519@{OPENSSL}"), openssl))
        })
        .collect()
}

fn engine(context: &Context) -> Result<Engine, Unavailable> {
    Engine::choose(&context.cpu, context.settings.select("mayo"))
        .map_err(|u| Unavailable::because(u.to_string()))
}

/// A scheme with a key pair, whatever implements it.
pub trait Signer {
    /// Makes another key pair and forgets it; false where that fails.
    fn keygen(&mut self) -> bool;
    /// A signature; `None` where signing fails.
    fn sign(&mut self, message: &[u8]) -> Option<Vec<u8>>;
    /// Whether a signature is accepted.
    fn verify(&mut self, message: &[u8], signature: &[u8]) -> bool;
    /// Who does it, and anything to note.
    fn facts(&self) -> Facts;
}

/// A scheme of a build of liboqs.
struct Theirs {
    peer: Box<dyn SignaturePeer>,
    set: SetId,
    public: Vec<u8>,
    secret: Vec<u8>,
    signature_bytes: usize,
}

impl Theirs {
    fn new(dir: &Path, peer: &str, scheme: &str) -> Result<Theirs, Unavailable> {
        let peer = Peers::find(dir, peer).map_err(|u| Unavailable::because(u.to_string()))?;
        let set = peer.others().iter().find(|set| set.name == scheme).cloned();
        let set = set.ok_or_else(|| Unavailable::because(format!("{} has no {scheme}", peer.name())))?;
        let (mut public, mut secret) = (vec![0; set.public_key], vec![0; set.secret_key]);
        seed_random(1);
        peer.keypair(set.id, &mut public, &mut secret).map_err(|e| Unavailable::because(e.to_string()))?;
        Ok(Theirs { peer, set: set.id, public, secret, signature_bytes: set.signature })
    }
}

impl Signer for Theirs {
    fn keygen(&mut self) -> bool {
        let (mut public, mut secret) = (vec![0; self.public.len()], vec![0; self.secret.len()]);
        let made = self.peer.keypair(self.set, &mut public, &mut secret).is_ok();
        black_box((public, secret));
        made
    }

    fn sign(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        let mut signature = vec![0; self.signature_bytes];
        let length = self.peer.sign(self.set, &mut signature, message, &self.secret).ok()?;
        signature.truncate(length);
        Some(signature)
    }

    fn verify(&mut self, message: &[u8], signature: &[u8]) -> bool {
        self.peer.verify(self.set, message, signature, &self.public) == Ok(true)
    }

    fn facts(&self) -> Facts {
        let card = self.peer.card();
        Facts { backend: card.name.clone(), notes: vec![card.compiler_version.clone()] }
    }
}

/// Ed25519.
struct ByOpenSsl {
    key: Ed25519,
    version: String,
}

impl ByOpenSsl {
    fn new() -> Result<ByOpenSsl, Unavailable> {
        seed_random(1);
        let version = ed25519::version().map_err(Unavailable::because)?;
        Ok(ByOpenSsl { key: Ed25519::generate().map_err(Unavailable::because)?, version })
    }
}

impl Signer for ByOpenSsl {
    fn keygen(&mut self) -> bool {
        black_box(Ed25519::public_key()).is_ok()
    }

    fn sign(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        self.key.sign(message).map(|s| s.to_vec())
    }

    fn verify(&mut self, message: &[u8], signature: &[u8]) -> bool {
        self.key.verify(message, signature)
    }

    fn facts(&self) -> Facts {
        Facts { backend: OPENSSL.to_owned(), notes: vec![self.version.clone()] }
    }
}

/// Ours, where a check wants all schemes alike; the races use MAYO's own.
struct Ours {
    engine: Engine,
    params: &'static Params,
    secret: SecretKey,
    filler: Filler,
}

impl Signer for Ours {
    fn keygen(&mut self) -> bool {
        let secret = SecretKey::generate(self.params, &mut self.filler);
        black_box(secret.public_key(self.engine));
        true
    }

    fn sign(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        let made = self.secret.sign_with(self.engine, message, SignOptions::default(), &mut self.filler);
        made.ok().map(lanework_mayo::Signature::into_bytes)
    }

    fn verify(&mut self, message: &[u8], signature: &[u8]) -> bool {
        let signature = lanework_mayo::Signature::from_bytes(self.params, signature);
        signature.is_ok_and(|s| self.secret.public_key(self.engine).verify(self.engine, message, &s).is_ok())
    }

    fn facts(&self) -> Facts {
        Facts { backend: self.engine.name().to_owned(), notes: Vec::new() }
    }
}

fn messages() -> Vec<[u8; 32]> {
    let mut filler = Filler::new(1);
    (0..POOL)
        .map(|_| {
            let mut message = [0; 32];
            filler.fill(&mut message);
            message
        })
        .collect()
}

/// A signature of each message, each of which verifies, and none for a changed message.
///
/// # Errors
/// What is wrong.
pub fn signed(signer: &mut dyn Signer, messages: &[[u8; 32]]) -> Result<Vec<Vec<u8>>, &'static str> {
    messages
        .iter()
        .map(|message| {
            let signature = signer.sign(message).ok_or("it does not sign")?;
            if !signer.verify(message, &signature) {
                return Err("it refuses its own signature");
            }
            let mut changed = *message;
            changed[7] ^= 1;
            if signer.verify(&changed, &signature) {
                return Err("it accepts a signature for a changed message");
            }
            Ok(signature)
        })
        .collect()
}

/// One operation of a peer as prepared work.
fn raced(mut signer: impl Signer + 'static, operation: Operation) -> Result<Box<dyn Runnable>, Unavailable> {
    let messages = messages();
    let signatures = signed(&mut signer, &messages).map_err(Unavailable::because)?;
    let facts = signer.facts();
    let facts = move || facts.clone();
    let mut at = 0;
    let mut next = move || {
        at = (at + 1) % POOL;
        at
    };
    Ok(match operation {
        Operation::Keygen => work(move || assert!(signer.keygen()), facts),
        Operation::Sign => work(move || assert!(black_box(signer.sign(&messages[next()])).is_some()), facts),
        Operation::Verify => work(
            move || {
                let i = next();
                assert!(signer.verify(&messages[i], &signatures[i]));
            },
            facts,
        ),
        _ => return Err(Unavailable::because("no other scheme has this operation")),
    })
}

/// What must hold before anything is timed: MAYO's quick checks on the backend that races, and for every scheme and build, each
/// signature of the pool verifies and is refused for a changed message.
#[must_use]
pub fn gate_rows(context: &Context) -> Vec<GateRow> {
    let mut rows = Vec::new();
    for (name, params) in ours() {
        let made = engine(context).map(|engine| {
            checks::run(engine, params, checks::Depth::Quick, &mut |r| rows.push(row(r)));
            let mut filler = Filler::new(5);
            Ours { engine, params, secret: SecretKey::generate(params, &mut filler), filler }
        });
        rows.push(checked(&name, "ours", made));
    }
    if let Some(dir) = &context.peers {
        for set in LIBOQS_13.others {
            for flavour in builds_of_liboqs() {
                rows.push(checked(set.name, flavour.name, Theirs::new(dir, flavour.name, set.name)));
            }
        }
        rows.push(checked("ed25519", OPENSSL, ByOpenSsl::new()));
    }
    rows
}

/// One row for a signer that may not be here.
pub fn checked(scheme: &str, who: &str, signer: Result<impl Signer, Unavailable>) -> GateRow {
    let mut row = GateRow {
        what: format!("signatures: {scheme} verifies its own and refuses a changed message"),
        backend: who.to_owned(),
        passed: 0,
        failed: 0,
        skipped: 0,
        why: String::new(),
    };
    match signer {
        Err(unavailable) => (row.skipped, row.why) = (1, unavailable.why),
        Ok(mut signer) => match (signer.keygen(), signed(&mut signer, &messages())) {
            (true, Ok(signatures)) => row.passed = 2 * signatures.len() as u64,
            (false, _) => (row.failed, row.why) = (1, "it makes no key pair".to_owned()),
            (_, Err(why)) => (row.failed, row.why) = (1, why.to_owned()),
        },
    }
    row
}
