//! The measurements of ../../*.c for the coroutines of the crate may, which have stacks; the same work, the same checks, the same
//! line of output.
//!
//!     bench NAME [WORKERS] [SCALE]
//!
//! Each stack has a guard that the kernel counts as a mapping of its own, so 32,000 coroutines at once are the most: the harness
//! lets the large rows have fewer, and leaves skynet out.
//!
//! Its channels have no limit. They stand for a rendezvous where a token goes round and the difference does not show, and
//! nowhere else.

use may::coroutine::{self, JoinHandle};
use may::go;
use may::sync::{mpsc, Mutex, SyncFlag};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::Arc;
use std::time::{Duration, Instant};

struct Outcome {
    n: u64,
    ns: f64,
    extras: String,
}

fn outcome(n: u64, start: Instant) -> Outcome {
    Outcome { n, ns: start.elapsed().as_nanos() as f64, extras: String::new() }
}

fn fail(what: String) -> ! {
    eprintln!("{what}");
    std::process::exit(1)
}

fn scaled(n: u64, scale: f64) -> u64 {
    ((n as f64 * scale) as u64).max(1)
}

/// A value in kB from /proc/self/status, in bytes.
fn status(key: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(':')));
    let number = line.and_then(|line| line.split_whitespace().nth(1)).and_then(|word| word.parse::<f64>().ok());
    number.unwrap_or(0.0) * 1024.0
}

fn yields(coroutines: u64, each: u64) -> Outcome {
    let start = Instant::now();
    let handles: Vec<JoinHandle<u64>> = (0..coroutines)
        .map(|_| {
            go!(move || {
                let mut done = 0;
                while done < each {
                    coroutine::yield_now();
                    done += 1;
                }
                done
            })
        })
        .collect();
    let sum = handles.into_iter().map(|handle| handle.join().unwrap()).sum();
    if sum != coroutines * each {
        fail(format!("{sum} yields were counted"));
    }
    outcome(sum, start)
}

fn check_sum(n: u64, sum: u64) {
    if sum != n * (n - 1) / 2 {
        fail(format!("the sum of the results is {sum}"));
    }
}

fn spawn_join(n: u64) -> Outcome {
    let start = Instant::now();
    let sum = (0..n).map(|i| go!(move || i).join().unwrap()).sum();
    let result = outcome(n, start);
    check_sum(n, sum);
    result
}

fn spawn_batch(n: u64) -> Outcome {
    let mut handles = Vec::with_capacity(n as usize);
    let start = Instant::now();
    for i in 0..n {
        handles.push(go!(move || i));
    }
    let sum = handles.into_iter().map(|handle| handle.join().unwrap()).sum();
    let result = outcome(n, start);
    check_sum(n, sum);
    result
}

fn spawn_turn(n: u64) -> Outcome {
    const GROUP: u64 = 100;
    let n = n.div_ceil(GROUP) * GROUP;
    let mut handles = Vec::with_capacity(GROUP as usize);
    let mut sum = 0;
    let start = Instant::now();
    for group in 0..n / GROUP {
        for k in 0..GROUP {
            handles.push(go!(move || group * GROUP + k));
        }
        coroutine::yield_now();
        for handle in handles.drain(..) {
            sum += handle.join().unwrap();
        }
    }
    let result = outcome(n, start);
    check_sum(n, sum);
    result
}

const ONE_SPAWN: u64 = 1 << 32;

/// The number in the lower half, the count of coroutines in the upper.
fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let left = go!(move || fib(n - 1));
    let right = fib(n - 2);
    left.join().unwrap() + right + ONE_SPAWN
}

fn fibonacci(n: u64) -> u64 {
    (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0
}

fn run_fib(scale: f64) -> Outcome {
    let mut n = 27;
    let mut s = scale;
    while s > 1.27 && n < 40 {
        n += 1;
        s /= 1.618;
    }
    while s < 0.79 && n > 2 {
        n -= 1;
        s *= 1.618;
    }
    let start = Instant::now();
    let both = fib(n);
    let result = outcome(both / ONE_SPAWN, start);
    if both % ONE_SPAWN != fibonacci(n) || result.n != fibonacci(n + 1) - 1 {
        fail(format!("fib({n}) gave {} with {} coroutines", both % ONE_SPAWN, result.n));
    }
    result
}

fn timers(n: u64) -> Outcome {
    const SECOND: u64 = 1_000_000_000;
    let late_sum = Arc::new(AtomicU64::new(0));
    let late_max = Arc::new(AtomicU64::new(0));
    let mut handles = Vec::with_capacity(n as usize);
    let start = Instant::now();
    for i in 0..n {
        let ns = if n > 1 { i * 7919 % n * SECOND / (n - 1) } else { SECOND };
        let (late_sum, late_max) = (late_sum.clone(), late_max.clone());
        handles.push(go!(move || {
            let (wanted, from) = (Duration::from_nanos(ns), Instant::now());
            coroutine::sleep(wanted);
            let slept = from.elapsed();
            if slept < wanted {
                fail("a sleep ended early".to_string());
            }
            let late = (slept - wanted).as_nanos() as u64;
            late_sum.fetch_add(late, Relaxed);
            late_max.fetch_max(late, Relaxed);
        }));
    }
    for handle in handles {
        handle.join().unwrap();
    }
    let mut result = outcome(n, start);
    if result.ns < SECOND as f64 {
        fail(format!("all sleeps were over after {} ns", result.ns));
    }
    result.ns -= SECOND as f64;
    let (mean, max) = (late_sum.load(SeqCst) as f64 / n as f64 / 1e3, late_max.load(SeqCst) as f64 / 1e3);
    result.extras = format!(" late_mean_us={mean:.0} late_max_us={max:.0}");
    result
}

fn parked(n: u64) -> Outcome {
    let gate = Arc::new(SyncFlag::new());
    let arrived = Arc::new(AtomicU64::new(0));
    let memory = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let mut handles = Vec::with_capacity(n as usize);
    let before = (status("VmRSS"), status("VmPTE"));
    let start = Instant::now();
    for _ in 0..n {
        let (gate, arrived, memory) = (gate.clone(), arrived.clone(), memory.clone());
        handles.push(go!(move || {
            if arrived.fetch_add(1, SeqCst) + 1 == n {
                memory[0].store(status("VmRSS") as u64, SeqCst);
                memory[1].store(status("VmPTE") as u64, SeqCst);
                gate.fire();
            }
            gate.wait();
            1
        }));
    }
    let passed: u64 = handles.into_iter().map(|handle| handle.join().unwrap()).sum();
    let mut result = outcome(n, start);
    if passed != n {
        fail(format!("{passed} coroutines passed the gate"));
    }
    let each = |now: u64, before: f64| (now as f64 - before) / n as f64;
    let (rss, pte) = (each(memory[0].load(SeqCst), before.0), each(memory[1].load(SeqCst), before.1));
    result.extras = format!(" rss_bytes={rss:.0} pte_bytes={pte:.0}");
    result
}

fn pingpong(n: u64) -> Outcome {
    let (there, questions) = mpsc::channel::<u64>();
    let (answers, back) = mpsc::channel();
    let other = go!(move || {
        for token in questions.iter() {
            answers.send(token + 1).unwrap();
        }
    });
    let mut token = 0;
    let start = Instant::now();
    for _ in 0..n {
        there.send(token).unwrap();
        token = back.recv().unwrap();
    }
    let result = outcome(n, start);
    drop(there);
    other.join().unwrap();
    if token != n {
        fail(format!("the token says {token}"));
    }
    result
}

/// The token counts the hops that are left; who receives 0 ends, and by that the others after it, one by one.
fn ring(n: u64) -> Outcome {
    const SEATS: usize = 503;
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..SEATS).map(|_| mpsc::channel::<u64>()).unzip();
    let first = senders[0].clone();
    let mut handles = Vec::with_capacity(SEATS);
    for (i, input) in receivers.into_iter().enumerate() {
        let output = senders[(i + 1) % SEATS].clone();
        handles.push(go!(move || {
            let mut passed = 0;
            for left in input.iter() {
                passed += 1;
                if left == 0 {
                    return (passed, true);
                }
                output.send(left - 1).unwrap();
            }
            (passed, false)
        }));
    }
    drop(senders);
    let start = Instant::now();
    first.send(n).unwrap();
    drop(first);
    let (mut passed, ended) = handles.swap_remove((n % SEATS as u64) as usize).join().unwrap();
    let result = outcome(n, start);
    for handle in handles {
        passed += handle.join().unwrap().0;
    }
    if !ended || passed != n + 1 {
        fail(format!("{passed} hops"));
    }
    result
}

fn mutex(n: u64) -> Outcome {
    const USERS: u64 = 16;
    let each = n.div_ceil(USERS);
    let balance = Arc::new(Mutex::new(0u64));
    let mut handles = Vec::with_capacity(USERS as usize);
    let start = Instant::now();
    for _ in 0..USERS {
        let balance = balance.clone();
        handles.push(go!(move || {
            for _ in 0..each {
                *balance.lock().unwrap() += 1;
            }
        }));
    }
    for handle in handles {
        handle.join().unwrap();
    }
    let result = outcome(USERS * each, start);
    let counted = *balance.lock().unwrap();
    if counted != result.n {
        fail(format!("{counted} increments were counted"));
    }
    result
}

fn run(name: &str, scale: f64) -> Outcome {
    match name {
        "yield" => yields(2, scaled(2_500_000, scale)),
        "yield1k" => yields(1000, scaled(5000, scale)),
        "spawn_join" => spawn_join(scaled(1_000_000, scale)),
        "spawn_batch" => spawn_batch(scaled(1_000_000, scale)),
        "spawn_turn" => spawn_turn(scaled(1_000_000, scale)),
        "fib" => run_fib(scale),
        "timers" => timers(scaled(100_000, scale)),
        "parked" => parked(scaled(100_000, scale)),
        "pingpong" => pingpong(scaled(1_000_000, scale)),
        "ring" => ring(scaled(2_000_000, scale)),
        "mutex" => mutex(scaled(2_000_000, scale)),
        _ => fail(format!("there is no benchmark '{name}'")),
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.len() < 2 || args.len() > 4 {
        fail(format!("usage: {} NAME [WORKERS] [SCALE]", args[0]));
    }
    let number = |at: usize, fallback: f64| match args.get(at).map(|word| word.parse::<f64>()) {
        None => fallback,
        Some(Ok(value)) if value >= 0.0 => value,
        _ => fail(format!("'{}' is not a number", args[at])),
    };
    std::panic::set_hook(Box::new(|panic| fail(panic.to_string())));
    if number(2, 0.0) > 0.0 {
        may::config().set_workers(number(2, 0.0) as usize);
    }
    let workers = may::config().get_workers();
    let name = args[1].clone();
    let scale = number(3, 1.0);
    let result = go!(move || run(&name, scale)).join().unwrap();
    println!("may {} {workers} {} {:.1}{}", args[1], result.n, result.ns / result.n as f64, result.extras);
}
