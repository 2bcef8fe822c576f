//! The prover against chiavdf's published proofs, byte by byte.
#![forbid(unsafe_code)]

use lanework_vdf::Engine;
use lanework_vdf::internals::known;
use lanework_vdf::prover::Stream;
use lanework_vdf::{Discriminant, Form, Options, Proof, Strict, Task, prove};

/// A record's task, with its proof's segments, and the proof.
fn record(depth: u64) -> (Task, Vec<u8>) {
    let record = known::records()
        .filter(|record| record.depth == depth)
        .min_by_key(|record| record.iterations)
        .expect("a record");
    let d = Discriminant::from_seed(&record.challenge, record.bits).expect("a discriminant");
    let x = Form::from_bytes(Strict, &d, &record.x).expect("a form");
    let proof = Proof::from_bytes(Strict, &d, &record.proof, depth, depth).expect("a proof");
    let segments = proof.segments.iter().map(|segment| segment.iterations).collect();
    (Task { segments, ..Task::new(d, x, record.iterations) }, record.proof)
}

#[test]
fn published_proofs_are_made_again() {
    for (depth, threads) in [(0, 2), (2, 2), (2, 1)] {
        let (task, expected) = record(depth);
        let options = Options::new(Engine::best()).threads(threads);
        let proved = prove(&task, &options, &mut |_| true).expect("a proof");
        assert!(proved.proof.to_bytes(&task.discriminant) == expected, "depth {depth}, {threads} threads");
    }
    let task = record(2).0;
    let segments = task.segments.clone();
    assert_eq!(task.in_two_thirds().segments, segments, "these are chiavdf's two thirds");
}

#[test]
fn a_million_squarings_have_chiavdfs_proof() {
    let (challenge, expected) = known::MILLION;
    let challenge = known::bytes(challenge).expect("a challenge");
    let d = Discriminant::from_seed(&challenge, 1024).expect("a discriminant");
    let x = Form::generator(&d).expect("a generator");
    // With room for a tenth of the forms: several passes.
    let options = Options::new(Engine::best()).memory(1 << 20);
    let task = Task::new(d, x, 1_000_000);
    let proved = prove(&task, &options, &mut |_| true).expect("a proof");
    assert!(Some(proved.proof.to_bytes(&task.discriminant)) == known::bytes(expected));
}

/// The default segments are Chia's, from 2^16 squarings up.
#[test]
fn a_stream_answers_with_chias_segments() {
    let d = Discriminant::from_seed(b"a timelord", 512).expect("a discriminant");
    let x = Form::generator(&d).expect("a generator");
    let stream = Stream::start(&d, &x, &Options::new(Engine::best())).expect("a stream");
    let iterations = (1 << 16) + 777;
    stream.request(iterations).expect("asked");
    let answer = stream.receive(std::time::Duration::from_secs(300)).expect("no fault");
    let (found, proof) = answer.expect("a proof in time");
    assert_eq!(found, iterations);
    let task = Task::new(d, x, iterations).in_chia_segments(63);
    assert_eq!(task.segments, [1 << 16]);
    let expected = prove(&task, &Options::new(Engine::best()), &mut |_| true).expect("a proof").proof;
    assert!(proof == expected);
}
