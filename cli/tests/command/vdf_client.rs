//! `lanework vdf client` against a timelord of this test.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Output, Stdio};
use std::time::Duration;

use crate::common::{Place, code, stderr};
use lanework_vdf::internals::known;
use lanework_vdf::{Discriminant, Form, Lenient, Limits, Question, number, verify};

/// The worker, and what each of its timelords does.
fn meet(place: &Place, more: &[&str], timelords: &mut [&mut dyn FnMut(TcpStream)]) -> Output {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port().to_string();
    let ask = [&["vdf", "client", "127.0.0.1", &port, "7"], more].concat();
    let mut command = place.command(&ask);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    for timelord in timelords {
        let (peer, _) = listener.accept().expect("a worker");
        peer.set_read_timeout(Some(Duration::from_secs(120))).expect("a timeout");
        timelord(peer);
    }
    if more.contains(&"--repeat") {
        child.kill().expect("it is ours");
    }
    child.wait_with_output().expect("it ends")
}

fn task(kind: char, d: &Discriminant, x: &[u8]) -> Vec<u8> {
    let text = number::to_decimal(&d.value());
    let mut out = format!("{kind}{:03}{text}", text.len()).into_bytes();
    out.push(x.len() as u8);
    out.extend_from_slice(x);
    out
}

fn read<const N: usize>(peer: &mut TcpStream) -> [u8; N] {
    let mut bytes = [0; N];
    peer.read_exact(&mut bytes).expect("bytes of the worker");
    bytes
}

/// A whole conversation with some proofs, all verified.
fn whole(mut peer: TcpStream, kind: char) {
    let d = Discriminant::from_seed(b"the command's timelord", 512).expect("a discriminant");
    let x = Form::generator(&d).expect("D is 1 modulo 8").to_bytes(&d);
    peer.write_all(&task(kind, &d, &x)).expect("the worker listens");
    assert_eq!(&read::<2>(&mut peer), b"OK");
    let (requests, asked): (&[u8], &[u64]) =
        if kind == 'S' { (b"0530000", &[30_000]) } else { (b"0412340567890", &[1234, 67_890]) };
    peer.write_all(requests).expect("the worker listens");
    let mut seen = Vec::new();
    while seen.len() < asked.len() {
        let mut text = vec![0; u32::from_be_bytes(read(&mut peer)) as usize];
        peer.read_exact(&mut text).expect("a proof");
        let content = known::bytes(std::str::from_utf8(&text).expect("text")).expect("digits");
        let iterations = u64::from_be_bytes(content[..8].try_into().expect("8 bytes"));
        assert_eq!(content[8..16], 100u64.to_be_bytes());
        let bytes = [&content[16..116], &content[117..]].concat();
        let question = Question { x: &x, proof: &bytes, iterations, depth: u64::from(content[116]) };
        assert_eq!(verify(Lenient, &d, &question, &Limits::default()), Ok(()));
        seen.push(iterations);
    }
    seen.sort_unstable();
    assert_eq!(seen, asked);
    peer.write_all(b"010").expect("the worker listens");
    assert_eq!(&read::<4>(&mut peer), b"STOP");
    peer.write_all(b"ACK").expect("the worker listens");
    assert_eq!(peer.read(&mut [0]).expect("the end"), 0);
}

#[test]
fn conversations_of_every_kind() {
    for kind in ['T', 'S', 'N'] {
        let place = Place::new();
        let output = meet(&place, &["--json"], &mut [&mut |peer| whole(peer, kind)]);
        assert_eq!(code(&output), 0, "{kind}: {}", stderr(&output));
        let events: Vec<serde_json::Value> = String::from_utf8_lossy(&output.stdout)
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        assert_eq!(events[0]["kind"], kind.to_string());
        assert!(events.iter().all(|event| event["worker"] == "7"));
        assert_eq!(events.last().expect("events")["event"], "done");
        assert_eq!(events.last().expect("events")["proofs"], if kind == 'S' { 1 } else { 2 });
    }
}

#[test]
fn nonsense_ends_one_conversation_and_not_the_worker() {
    let place = Place::new();
    let says = |bytes: &'static [u8]| {
        move |mut peer: TcpStream| {
            peer.write_all(bytes).expect("the worker listens");
            let mut heard = Vec::new();
            let _ = peer.read_to_end(&mut heard);
            assert!(heard.is_empty() || heard == b"STOP", "{heard:?}");
        }
    };
    for (bytes, why) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "T, S or N"),
        (b"T999", "999 bytes announced"),
        (b"T0041024", "not negative"),
        (b"N005-1024", "1 modulo 4"),
    ] {
        let output = meet(&place, &[], &mut [&mut says(bytes)]);
        assert_eq!(code(&output), 2, "{}", stderr(&output));
        let told = stderr(&output);
        assert!(told.starts_with("error: worker 7: 127.0.0.1:") && told.contains(why), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
    // Silence in the middle of a task.
    let mut silent = |mut peer: TcpStream| {
        peer.write_all(b"N").expect("the worker listens");
        let _ = peer.read_to_end(&mut Vec::new());
    };
    let output = meet(&place, &["--timeout", "1"], &mut [&mut silent]);
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    assert!(stderr(&output).contains("nothing came for too long"));
    // The same worker then meets a good timelord.
    let mut good = |peer: TcpStream| whole(peer, 'N');
    let mut bad = says(b"Q");
    meet(&place, &["--repeat"], &mut [&mut bad, &mut good]);
}

#[test]
fn a_parked_worker_waits_longer_than_the_timeout() {
    let place = Place::new();
    let mut parks = |peer: TcpStream| {
        std::thread::sleep(Duration::from_millis(2500));
        whole(peer, 'N');
    };
    let output = meet(&place, &["--timeout", "1"], &mut [&mut parks]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
}

#[cfg(unix)]
#[test]
fn a_parked_worker_ends_at_a_signal() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port().to_string();
    let mut command = place.signalled(&["vdf", "client", "127.0.0.1", &port, "7"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the command starts");
    // Signals are handled before the connection is made.
    let (mut peer, _) = listener.accept().expect("a worker");
    let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.expect("kill can be run").success());
    assert_eq!(peer.read(&mut [0]).expect("the end"), 0, "nothing is said");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(code(&output), 130, "{}", stderr(&output));
    assert!(stderr(&output).contains("worker 7: interrupted"), "{}", stderr(&output));
}

#[test]
fn a_timelord_that_is_not_there() {
    let place = Place::new();
    // A port that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let output = place.run(&["vdf", "client", "127.0.0.1", &port.to_string(), "1"]);
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    assert!(stderr(&output).contains("\nhelp: check that a timelord listens there"), "{}", stderr(&output));
}

/// The search for a timelord that does not answer would take ten minutes.
#[cfg(target_os = "linux")]
#[test]
fn a_worker_that_is_still_connecting_ends_at_a_signal() {
    use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
    let place = Place::new();
    let full = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    bind(&full, &std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listen(&full, 0).expect("it listens");
    let address = getsockname(&full).expect("an address");
    let address = std::net::SocketAddr::try_from(address).expect("an Internet address");
    // Until nobody gets in any more.
    let inside: Vec<TcpStream> = (0..100)
        .map_while(|_| TcpStream::connect_timeout(&address, Duration::from_millis(300)).ok())
        .collect();
    assert!(inside.len() < 100, "the queue never fills");
    let port = address.port().to_string();
    let mut command = place.signalled(&["vdf", "client", "127.0.0.1", &port, "7", "--timeout", "600"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the command starts");
    std::thread::sleep(Duration::from_millis(1500));
    let begin = std::time::Instant::now();
    let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(code(&output), 130, "{}", stderr(&output));
    assert!(begin.elapsed() < Duration::from_secs(60));
}
