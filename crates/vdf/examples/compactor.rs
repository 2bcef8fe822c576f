//! Times squaring, proving and compacting of one chain in turns.
use lanework_vdf::*;
use std::time::Instant;
fn cpu() -> f64 {
    let s = std::fs::read_to_string("/proc/self/stat").unwrap();
    let f: Vec<&str> = s.rsplit(')').next().unwrap().split_whitespace().collect();
    (f[11].parse::<f64>().unwrap() + f[12].parse::<f64>().unwrap()) / 100.0
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let t: u64 = a[2].parse().unwrap();
    let rounds: usize = a[3].parse().unwrap();
    let engine =
        Engine::available(&lanework_cpu::Cpu::detect()).into_iter().find(|e| e.name() == a[1]).unwrap();
    let d = Discriminant::from_seed(b"compaction", 1024).unwrap();
    let x = Form::generator(&d).unwrap();
    let claim = |n: u64| {
        let task = Task::new(d.clone(), x.clone(), n);
        Claim { iterations: n, y: evaluate(&task, &Options::new(engine), &mut |_| true).unwrap().y }
    };
    let all: Vec<Claim> = {
        let mut v: Vec<Claim> = vec![claim(t)];
        for i in 1..8u64 {
            v.push(claim(t - i * t / 64));
        }
        v
    };
    for _ in 0..rounds {
        let (c, w) = (cpu(), Instant::now());
        evaluate(&Task::new(d.clone(), x.clone(), t), &Options::new(engine), &mut |_| true).unwrap();
        let (c0, w0) = (cpu() - c, w.elapsed().as_secs_f64());
        print!("squaring {c0:.2} {w0:.2}");
        for (n, threads) in [(1, 1), (8, 1), (1, 2), (8, 2)] {
            let claims = Claims { discriminant: d.clone(), x: x.clone(), claims: all[..n].to_vec() };
            let (c, w) = (cpu(), Instant::now());
            let done =
                compact(&claims, &Options::new(engine).threads(threads), &mut |_| true, &mut |_, o| {
                    assert!(o != Outcome::Wrong)
                })
                .unwrap();
            let (c1, w1) = (cpu() - c, w.elapsed().as_secs_f64());
            print!(
                " | {n}x{threads}t cpu {:.3} wall {:.3} ({} products, end {:.2} s)",
                c1 / c0,
                w1 / w0,
                done.products,
                done.seconds.proving
            );
        }
        println!();
    }
}
