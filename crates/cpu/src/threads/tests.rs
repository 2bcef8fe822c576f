//! Every kind of threads.
#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::*;

/// Longer than a worker waits awake.
const NAP: Duration = Duration::from_millis(2);

/// Calls for tests whose faults depend on chance.
const CALLS: usize = if cfg!(miri) { 20 } else { 2000 };

/// Asserts that every item is done once.
fn does_all(threads: Threads<'_>, count: usize) {
    let mut items = vec![0usize; count];
    threads.for_each(&mut items, |i, item| *item += i + 1).unwrap();
    assert!(items.iter().enumerate().all(|(i, &x)| x == i + 1), "{threads:?}, {count}");
}

/// Pools with threads that sleep at once, after the usual time, and practically never.
fn pools(threads: usize) -> [ThreadPool; 3] {
    [Duration::ZERO, ThreadPool::PATIENCE, Duration::from_secs(60)]
        .map(|patience| ThreadPool::with_patience(threads, patience).unwrap())
}

#[test]
fn every_item_is_done_once_on_every_kind_of_threads() {
    for count in [0, 1, 2, 3, 101] {
        for threads in [Threads::One, Threads::Own(0), Threads::Own(1), Threads::Own(4)] {
            does_all(threads, count);
        }
        for pool in [1, 2, 7].into_iter().flat_map(pools) {
            does_all(Threads::Pool(&pool), count);
        }
    }
}

#[cfg(feature = "rayon")]
#[test]
fn a_callers_pool_of_rayon_is_the_one_that_runs() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).thread_name(|_| "callers".to_owned()).build();
    let pool = pool.unwrap();
    assert_eq!(Threads::Rayon(&pool).count(), 2);
    does_all(Threads::Rayon(&pool), 101);
    let mut names = vec![String::new(); 8];
    Threads::Rayon(&pool)
        .for_each(&mut names, |_, n| *n = thread::current().name().unwrap_or("").to_owned())
        .unwrap();
    assert!(names.iter().all(|n| n == "callers"), "{names:?}");
}

#[test]
fn no_number_of_threads_is_too_large_to_ask_for() {
    for asked in [Threads::MOST + 1, 1 << 61, usize::MAX] {
        let threads = Threads::Own(asked);
        assert_eq!(threads.count(), Threads::MOST);
        does_all(threads, 3);
    }
    assert_eq!(Threads::Own(Threads::MOST).count(), Threads::MOST);
}

#[test]
fn all_threads_of_a_pool_work_and_the_caller_is_one_of_them() {
    for pool in pools(3) {
        assert_eq!(pool.threads(), 3);
        for pause in [Duration::ZERO, NAP, Duration::ZERO] {
            thread::sleep(pause);
            // Each item waits for the two others, so no thread can do two.
            let barrier = Barrier::new(3);
            let mut ids = [None; 3];
            let meet = |_, id: &mut _| {
                barrier.wait();
                *id = Some(thread::current().id());
            };
            Threads::Pool(&pool).for_each(&mut ids, meet).unwrap();
            assert!(ids.contains(&Some(thread::current().id())), "{ids:?}");
            assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[2] != ids[0], "{ids:?}");
        }
    }
}

#[test]
fn calls_in_quick_and_in_slow_succession_do_everything() {
    for pool in pools(3) {
        for call in 0..CALLS {
            does_all(Threads::Pool(&pool), call % 5);
            if call % (CALLS / 10) == 0 {
                thread::sleep(NAP);
            }
        }
    }
}

#[test]
fn uneven_work_waits_for_the_last_item() {
    for pool in pools(2) {
        for slow in 0..4 {
            let mut done = [false; 4];
            let task = |i, done: &mut bool| {
                if i == slow {
                    thread::sleep(NAP);
                }
                *done = true;
            };
            Threads::Pool(&pool).for_each(&mut done, task).unwrap();
            assert_eq!(done, [true; 4]);
        }
    }
}

#[test]
fn a_panic_reaches_the_caller_when_all_threads_have_finished() {
    for pool in pools(2) {
        for who in ["caller", "worker"] {
            let caller = thread::current().id();
            let (met, finished) = (Barrier::new(2), AtomicUsize::new(0));
            let mut items = [(); 2];
            let call = || {
                Threads::Pool(&pool).for_each(&mut items, |_, ()| {
                    met.wait();
                    assert!((thread::current().id() == caller) != (who == "caller"), "planted in the {who}");
                    thread::sleep(NAP);
                    finished.fetch_add(1, Ordering::Relaxed);
                })
            };
            let payload = catch_unwind(AssertUnwindSafe(call)).unwrap_err();
            assert!(payload.downcast_ref::<String>().is_some_and(|why| why.contains(who)));
            assert_eq!(finished.load(Ordering::Relaxed), 1);
            does_all(Threads::Pool(&pool), 9);
        }
    }
}

#[test]
fn a_panic_of_every_item_is_one_panic() {
    for pool in pools(3) {
        let mut items = [(); 9];
        let call = || Threads::Pool(&pool).for_each(&mut items, |_, ()| panic!("planted"));
        assert!(catch_unwind(AssertUnwindSafe(call)).is_err());
        does_all(Threads::Pool(&pool), 9);
    }
}

#[test]
fn a_call_inside_a_task_runs_on_the_tasks_thread() {
    for pool in pools(3) {
        let mut outer = [0; 7];
        let task = |_, sum: &mut usize| {
            let here = thread::current().id();
            let mut inner = [0; 5];
            let nested = |i, item: &mut usize| {
                assert_eq!(thread::current().id(), here);
                *item = i;
            };
            Threads::Pool(&pool).for_each(&mut inner, nested).unwrap();
            *sum = inner.iter().sum();
        };
        Threads::Pool(&pool).for_each(&mut outer, task).unwrap();
        assert_eq!(outer, [10; 7]);
    }
}

#[test]
fn threads_that_share_a_pool_do_not_wait_for_each_other() {
    for pool in pools(2) {
        let both = Barrier::new(2);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..CALLS / 10 {
                        does_all(Threads::Pool(&pool), 4);
                    }
                    // Deadlocks if one of these calls waits for the end of the other.
                    let meet = |i, (): &mut ()| {
                        if i == 0 {
                            both.wait();
                        }
                    };
                    Threads::Pool(&pool).for_each(&mut [(); 2], meet).unwrap();
                });
            }
        });
    }
}

#[test]
fn a_pool_ends_awake_or_asleep_and_before_its_threads_have_begun() {
    for pause in [Duration::ZERO, NAP] {
        for used in [false, true] {
            for pool in pools(3) {
                if used {
                    does_all(Threads::Pool(&pool), 5);
                }
                thread::sleep(pause);
            }
        }
    }
}
