//! The measurements of ../../*.c for Tokio's tasks; the same work, the same checks, the same line of output.
//!
//!     bench NAME [WORKERS] [SCALE] [PARAMETER]      the multi-threaded runtime with so many workers; 0 or nothing leaves it to Tokio
//!
//! Tasks here have no stacks: what is parked is a future of some hundred bytes, and every function that may wait has to be
//! written as one.
//!
//! Tokio has no rendezvous channel: where the others use one, its channel has capacity 1, the least there is. Nor has it a channel
//! with several receivers; that one is from the crate flume.

mod scale;
mod work;

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, Semaphore};
use tokio::task::{spawn, yield_now, JoinSet};

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

async fn yields(tasks: u64, each: u64) -> Outcome {
    let start = Instant::now();
    let mut handles = Vec::with_capacity(tasks as usize);
    for _ in 0..tasks {
        handles.push(spawn(async move {
            let mut done = 0;
            while done < each {
                yield_now().await;
                done += 1;
            }
            done
        }));
    }
    let mut sum = 0;
    for handle in handles {
        sum += handle.await.unwrap();
    }
    if sum != tasks * each {
        fail(format!("{sum} yields were counted"));
    }
    outcome(sum, start)
}

fn check_sum(n: u64, sum: u64) {
    if sum != n * (n - 1) / 2 {
        fail(format!("the sum of the results is {sum}"));
    }
}

async fn spawn_join(n: u64) -> Outcome {
    let start = Instant::now();
    let mut sum = 0;
    for i in 0..n {
        sum += spawn(async move { i }).await.unwrap();
    }
    check_sum(n, sum);
    outcome(n, start)
}

async fn spawn_batch(n: u64) -> Outcome {
    let mut handles = Vec::with_capacity(n as usize);
    let start = Instant::now();
    for i in 0..n {
        handles.push(spawn(async move { i }));
    }
    let mut sum = 0;
    for handle in handles {
        sum += handle.await.unwrap();
    }
    check_sum(n, sum);
    outcome(n, start)
}

async fn nursery(n: u64, tiny: u64) -> Outcome {
    let start = Instant::now();
    let mut set = JoinSet::new();
    for i in 0..n {
        set.spawn(async move { i });
    }
    let mut sum = 0;
    while let Some(result) = set.join_next().await {
        sum += result.unwrap();
    }
    check_sum(n, sum);
    let mut result = outcome(n, start);
    let start = Instant::now();
    for i in 0..tiny {
        let mut one = JoinSet::new();
        one.spawn(async move { i });
        if one.join_next().await.map(Result::unwrap) != Some(i) {
            fail("a child has not run".to_string());
        }
    }
    result.extras = format!(" tiny_ns={:.1}", outcome(tiny, start).ns / tiny as f64);
    result
}

async fn spawn_turn(n: u64) -> Outcome {
    const GROUP: u64 = 100;
    let n = n.div_ceil(GROUP) * GROUP;
    let mut handles = Vec::with_capacity(GROUP as usize);
    let mut sum = 0;
    let start = Instant::now();
    for group in 0..n / GROUP {
        for k in 0..GROUP {
            handles.push(spawn(async move { group * GROUP + k }));
        }
        yield_now().await;
        for handle in handles.drain(..) {
            sum += handle.await.unwrap();
        }
    }
    check_sum(n, sum);
    outcome(n, start)
}

const ONE_SPAWN: u64 = 1 << 32;

/// The number in the lower half, the count of tasks in the upper.
fn fib(n: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if n < 2 {
            return n;
        }
        let left = spawn(fib(n - 1));
        let right = fib(n - 2).await;
        left.await.unwrap() + right + ONE_SPAWN
    })
}

fn fibonacci(n: u64) -> u64 {
    (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0
}

async fn run_fib(scale: f64) -> Outcome {
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
    let both = fib(n).await;
    let result = outcome(both / ONE_SPAWN, start);
    if both % ONE_SPAWN != fibonacci(n) || result.n != fibonacci(n + 1) - 1 {
        fail(format!("fib({n}) gave {} with {} tasks", both % ONE_SPAWN, result.n));
    }
    result
}

const CHILDREN: u64 = 10;

fn node(first: u64, leaves: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if leaves == 1 {
            return first;
        }
        let share = leaves / CHILDREN;
        let mut children = Vec::with_capacity(CHILDREN as usize);
        for i in 0..CHILDREN {
            children.push(spawn(node(first + i * share, share)));
        }
        let mut sum = 0;
        for child in children {
            sum += child.await.unwrap();
        }
        sum
    })
}

async fn skynet(scale: f64) -> Outcome {
    let mut leaves = 1_000_000;
    let mut s = scale;
    while s > 3.2 && leaves < 100_000_000 {
        leaves *= CHILDREN;
        s /= 10.0;
    }
    while s < 0.32 && leaves > 1 {
        leaves /= CHILDREN;
        s *= 10.0;
    }
    let (mut nodes, mut level) = (0, leaves);
    while level > 0 {
        nodes += level;
        level /= CHILDREN;
    }
    let start = Instant::now();
    let sum = spawn(node(0, leaves)).await.unwrap();
    let result = outcome(nodes, start);
    if sum != leaves * (leaves - 1) / 2 {
        fail(format!("the sum is {sum}"));
    }
    result
}

async fn timers(n: u64) -> Outcome {
    const SECOND: u64 = 1_000_000_000;
    let late_sum = Arc::new(AtomicU64::new(0));
    let late_max = Arc::new(AtomicU64::new(0));
    let mut handles = Vec::with_capacity(n as usize);
    let start = Instant::now();
    for i in 0..n {
        let ns = if n > 1 { i * 7919 % n * SECOND / (n - 1) } else { SECOND };
        let (late_sum, late_max) = (late_sum.clone(), late_max.clone());
        handles.push(spawn(async move {
            let (wanted, from) = (Duration::from_nanos(ns), Instant::now());
            tokio::time::sleep(wanted).await;
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
        handle.await.unwrap();
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

async fn parked(n: u64) -> Outcome {
    let gate = Arc::new(Semaphore::new(0));
    let arrived = Arc::new(AtomicU64::new(0));
    let memory = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let mut handles = Vec::with_capacity(n as usize);
    let before = (status("VmRSS"), status("VmPTE"));
    let start = Instant::now();
    for _ in 0..n {
        let (gate, arrived, memory) = (gate.clone(), arrived.clone(), memory.clone());
        handles.push(spawn(async move {
            if arrived.fetch_add(1, SeqCst) + 1 == n {
                memory[0].store(status("VmRSS") as u64, SeqCst);
                memory[1].store(status("VmPTE") as u64, SeqCst);
                gate.close();
            }
            gate.acquire().await.is_err() as u64
        }));
    }
    let mut passed = 0;
    for handle in handles {
        passed += handle.await.unwrap();
    }
    let mut result = outcome(n, start);
    if passed != n {
        fail(format!("{passed} tasks passed the gate"));
    }
    let each = |now: u64, before: f64| (now as f64 - before) / n as f64;
    let (rss, pte) = (each(memory[0].load(SeqCst), before.0), each(memory[1].load(SeqCst), before.1));
    result.extras = format!(" rss_bytes={rss:.0} pte_bytes={pte:.0}");
    result
}

async fn pingpong(n: u64) -> Outcome {
    let (there, mut questions) = mpsc::channel::<u64>(1);
    let (answers, mut back) = mpsc::channel(1);
    let other = spawn(async move {
        while let Some(token) = questions.recv().await {
            answers.send(token + 1).await.unwrap();
        }
    });
    let mut token = 0;
    let start = Instant::now();
    for _ in 0..n {
        there.send(token).await.unwrap();
        token = back.recv().await.unwrap();
    }
    let result = outcome(n, start);
    drop(there);
    other.await.unwrap();
    if token != n {
        fail(format!("the token says {token}"));
    }
    result
}

/// What a consumer has received.
#[derive(Default)]
struct Received {
    count: u64,
    sum: u64,
    last: u64,
    disorder: u64,
}

impl Received {
    fn take(&mut self, value: u64) {
        self.count += 1;
        self.sum += value;
        self.disorder += (value < self.last) as u64;
        self.last = value;
    }

    fn check(&self, n: u64) {
        if self.count != n || self.sum != n * (n - 1) / 2 {
            fail(format!("{} values with sum {}", self.count, self.sum));
        }
    }
}

async fn spsc(capacity: usize, n: u64) -> Outcome {
    let (sender, mut receiver) = mpsc::channel(capacity);
    let start = Instant::now();
    let consumer = spawn(async move {
        let mut got = Received::default();
        while let Some(value) = receiver.recv().await {
            got.take(value);
        }
        got
    });
    let producer = spawn(async move {
        for value in 0..n {
            sender.send(value).await.unwrap();
        }
    });
    producer.await.unwrap();
    let got = consumer.await.unwrap();
    let result = outcome(n, start);
    got.check(n);
    if got.disorder != 0 {
        fail("values came out of order".to_string());
    }
    result
}

async fn mpmc(n: u64) -> Outcome {
    const EACH: u64 = 4;
    let share = (n / EACH).max(1);
    let n = share * EACH;
    let (sender, receiver) = flume::bounded(128);
    let (mut producers, mut consumers) = (Vec::new(), Vec::new());
    let start = Instant::now();
    for _ in 0..EACH {
        let receiver = receiver.clone();
        consumers.push(spawn(async move {
            let mut got = Received::default();
            while let Ok(value) = receiver.recv_async().await {
                got.take(value);
            }
            got
        }));
    }
    for i in 0..EACH {
        let sender = sender.clone();
        producers.push(spawn(async move {
            for value in i * share..(i + 1) * share {
                sender.send_async(value).await.unwrap();
            }
        }));
    }
    for producer in producers {
        producer.await.unwrap();
    }
    drop(sender);
    let mut all = Received::default();
    for consumer in consumers {
        let got = consumer.await.unwrap();
        all.count += got.count;
        all.sum += got.sum;
    }
    let result = outcome(n, start);
    all.check(n);
    result
}

/// The token counts the hops that are left; who receives 0 ends, and by that the others after it, one by one.
async fn ring(n: u64) -> Outcome {
    const SEATS: usize = 503;
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..SEATS).map(|_| mpsc::channel::<u64>(1)).unzip();
    let first = senders[0].clone();
    let mut handles = Vec::with_capacity(SEATS);
    for (i, mut input) in receivers.into_iter().enumerate() {
        let output = senders[(i + 1) % SEATS].clone();
        handles.push(spawn(async move {
            let mut passed = 0;
            while let Some(left) = input.recv().await {
                passed += 1;
                if left == 0 {
                    return (passed, true);
                }
                output.send(left - 1).await.unwrap();
            }
            (passed, false)
        }));
    }
    drop(senders);
    let start = Instant::now();
    first.send(n).await.unwrap();
    drop(first);
    let (mut passed, ended) = handles.swap_remove((n % SEATS as u64) as usize).await.unwrap();
    let result = outcome(n, start);
    for handle in handles {
        passed += handle.await.unwrap().0;
    }
    if !ended || passed != n + 1 {
        fail(format!("{passed} hops"));
    }
    result
}

async fn select(n: u64) -> Outcome {
    let produce = |values: std::ops::Range<u64>| {
        let (sender, receiver) = mpsc::channel(1);
        spawn(async move {
            for value in values {
                sender.send(value).await.unwrap();
            }
        });
        receiver
    };
    let start = Instant::now();
    let (mut a, mut b) = (produce(0..n / 2), produce(n / 2..n));
    let mut got = Received::default();
    loop {
        tokio::select! {
            Some(value) = a.recv() => got.take(value),
            Some(value) = b.recv() => got.take(value),
            else => break,
        }
    }
    let result = outcome(n, start);
    got.check(n);
    result
}

fn nth_prime(n: u64) -> i32 {
    (2..).filter(|p| (2..).take_while(|d| d * d <= *p).all(|d| p % d != 0)).nth(n as usize - 1).unwrap()
}

async fn sieve(n: u64) -> Outcome {
    let mut handles = Vec::with_capacity(n as usize + 1);
    let mut prime = 0;
    let start = Instant::now();
    let (numbers, mut input) = mpsc::channel(1);
    handles.push(spawn(async move {
        let mut i = 2;
        while numbers.send(i).await.is_ok() {
            i += 1;
        }
    }));
    for _ in 0..n {
        prime = input.recv().await.unwrap();
        let (output, next) = mpsc::channel(1);
        handles.push(spawn(async move {
            while let Some(i) = input.recv().await {
                if i % prime != 0 && output.send(i).await.is_err() {
                    break;
                }
            }
        }));
        input = next;
    }
    let result = outcome(n, start);
    drop(input);
    for handle in handles {
        handle.await.unwrap();
    }
    if prime != nth_prime(n) || (n == 1500 && prime != 12553) {
        fail(format!("the last prime is {prime}"));
    }
    result
}

async fn mutex(n: u64) -> Outcome {
    const USERS: u64 = 16;
    let each = n.div_ceil(USERS);
    let balance = Arc::new(tokio::sync::Mutex::new(0u64));
    let mut handles = Vec::with_capacity(USERS as usize);
    let start = Instant::now();
    for _ in 0..USERS {
        let balance = balance.clone();
        handles.push(spawn(async move {
            for _ in 0..each {
                *balance.lock().await += 1;
            }
        }));
    }
    for handle in handles {
        handle.await.unwrap();
    }
    let result = outcome(USERS * each, start);
    let counted = *balance.lock().await;
    if counted != result.n {
        fail(format!("{counted} increments were counted"));
    }
    result
}

async fn run(name: String, scale: f64, parameter: u64, workers: usize) -> Outcome {
    if let Some(result) = work::work(&name, scale, workers).await {
        return result;
    }
    match name.as_str() {
        "yield" => yields(2, scaled(2_500_000, scale)).await,
        "yield1k" => yields(1000, scaled(5000, scale)).await,
        "spawn_join" => spawn_join(scaled(1_000_000, scale)).await,
        "spawn_batch" => spawn_batch(scaled(1_000_000, scale)).await,
        "nursery" => nursery(scaled(1_000_000, scale), scaled(200_000, scale)).await,
        "spawn_turn" => spawn_turn(scaled(1_000_000, scale)).await,
        "fib" => run_fib(scale).await,
        "skynet" => skynet(scale).await,
        "timers" => timers(scaled(100_000, scale)).await,
        "pingpong" => pingpong(scaled(1_000_000, scale)).await,
        "spsc" => spsc(128, scaled(5_000_000, scale)).await,
        "spsc_cap1" => spsc(1, scaled(2_000_000, scale)).await,
        "mpmc" => mpmc(scaled(4_000_000, scale)).await,
        "ring" => ring(scaled(2_000_000, scale)).await,
        "select" => select(scaled(2_000_000, scale)).await,
        "sieve" => sieve(scaled(1500, scale)).await,
        "mutex" => mutex(scaled(2_000_000, scale)).await,
        "parked" => parked(scaled(100_000, scale)).await,
        _ => scale::grow(&name, scale, parameter).await,
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.len() < 2 || args.len() > 5 {
        fail(format!("usage: {} NAME [WORKERS] [SCALE] [PARAMETER]", args[0]));
    }
    let number = |at: usize, fallback: f64| match args.get(at).map(|word| word.parse::<f64>()) {
        None => fallback,
        Some(Ok(value)) if value >= 0.0 => value,
        _ => fail(format!("'{}' is not a number", args[at])),
    };
    if args[1] == "cold_child" {
        work::cold_child(number(2, 1.0) as usize);
    }
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if number(2, 0.0) > 0.0 {
        builder.worker_threads(number(2, 0.0) as usize);
    }
    let runtime = builder.enable_time().build().unwrap_or_else(|error| fail(format!("no runtime: {error}")));
    let workers = runtime.metrics().num_workers();
    let name = args[1].clone();
    let scale = number(3, 1.0);
    let parameter = number(4, 1000.0) as u64;
    let result = runtime.block_on(async { spawn(run(name, scale, parameter, workers)).await.unwrap() });
    println!("tokio {} {workers} {} {:.1}{}", args[1], result.n, result.ns / result.n as f64, result.extras);
}
