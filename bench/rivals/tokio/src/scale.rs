//! How costs grow with a parameter: the measurements of ../../../scale_*.c, latency.c, tail.c and idle.c for Tokio's tasks.

use crate::{fail, outcome, scaled, spsc, status, Outcome};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, Semaphore};
use tokio::task::{spawn, yield_now};

/// What a rival cannot do is no failure of its program.
fn unavailable(why: &str) -> ! {
    eprintln!("{why}");
    std::process::exit(77)
}

/// CPU time of the process, in user space and in the kernel, and how often its threads were switched to.
pub fn usage() -> (f64, i64) {
    let mut u: libc::rusage = unsafe { std::mem::zeroed() };
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut u) };
    let ns = |t: libc::timeval| t.tv_sec as f64 * 1e9 + t.tv_usec as f64 * 1e3;
    (ns(u.ru_utime) + ns(u.ru_stime), u.ru_nvcsw + u.ru_nivcsw)
}

pub fn percentiles(prefix: &str, samples: &mut [u64]) -> String {
    samples.sort_unstable();
    let points = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999), ("p9999", 0.9999), ("max", 1.0)];
    let at = |part: f64| samples[(part * (samples.len() - 1) as f64 + 0.5) as usize] as f64 / 1e3;
    points.iter().map(|(name, part)| format!(" {prefix}{name}_us={:.2}", at(*part))).collect()
}

/// A gate that opens when n have come, and a clock that starts when all n have had their first turn behind it.
struct Gate {
    n: u64,
    arrived: AtomicU64,
    begun: AtomicU64,
    finished: AtomicU64,
    door: Semaphore,
    start: OnceLock<Instant>,
    end: OnceLock<Instant>,
}

impl Gate {
    fn new(n: u64) -> Arc<Gate> {
        let zero = || AtomicU64::new(0);
        let (start, end) = (OnceLock::new(), OnceLock::new());
        Arc::new(Gate { n, arrived: zero(), begun: zero(), finished: zero(), door: Semaphore::new(0), start, end })
    }

    async fn pass(&self) {
        if self.arrived.fetch_add(1, SeqCst) + 1 == self.n {
            self.door.close();
        }
        if self.door.acquire().await.is_ok() {
            fail("the gate gave something".to_string());
        }
        if self.begun.fetch_add(1, SeqCst) + 1 == self.n {
            self.start.set(Instant::now()).unwrap();
        }
        while self.begun.load(Relaxed) < self.n {
            yield_now().await;
        }
    }

    fn finish(&self) {
        if self.finished.fetch_add(1, SeqCst) + 1 == self.n {
            self.end.set(Instant::now()).unwrap();
        }
    }

    fn outcome(&self, n: u64) -> Outcome {
        let ns = (*self.end.get().unwrap() - *self.start.get().unwrap()).as_nanos() as f64;
        Outcome { n, ns, extras: String::new() }
    }
}

async fn scale_yield(tasks: u64, n: u64) -> Outcome {
    let each = (n / tasks).max(8);
    let gate = Gate::new(tasks);
    let mut handles = Vec::with_capacity(tasks as usize);
    for _ in 0..tasks {
        let gate = gate.clone();
        handles.push(spawn(async move {
            gate.pass().await;
            for _ in 0..each {
                yield_now().await;
            }
            gate.finish();
        }));
    }
    for handle in handles {
        handle.await.unwrap();
    }
    gate.outcome(tasks * each)
}

async fn scale_pairs(tasks: u64, n: u64) -> Outcome {
    let pairs = (tasks / 2).max(1);
    let rounds = (n / pairs).max(4);
    let gate = Gate::new(pairs);
    let mut handles = Vec::with_capacity(pairs as usize);
    for _ in 0..pairs {
        let (there, mut questions) = mpsc::channel::<u64>(1);
        let (answers, mut back) = mpsc::channel(1);
        spawn(async move {
            while let Some(token) = questions.recv().await {
                answers.send(token + 1).await.unwrap();
            }
        });
        let gate = gate.clone();
        handles.push(spawn(async move {
            gate.pass().await;
            let mut token = 0;
            for _ in 0..rounds {
                there.send(token).await.unwrap();
                token = back.recv().await.unwrap();
            }
            gate.finish();
            token
        }));
    }
    let mut sum = 0;
    for handle in handles {
        sum += handle.await.unwrap();
    }
    if sum != pairs * rounds {
        fail(format!("{sum} messages were answered"));
    }
    gate.outcome(2 * pairs * rounds)
}

pub fn memory() -> f64 {
    status("VmRSS") + status("VmPTE")
}

async fn scale_parked(n: u64) -> Outcome {
    let gate = Arc::new(Semaphore::new(0));
    let arrived = Arc::new(AtomicU64::new(0));
    let during = Arc::new(AtomicU64::new(0));
    let mut handles = Vec::with_capacity(n as usize);
    let before = memory();
    let start = Instant::now();
    for _ in 0..n {
        let (gate, arrived, during) = (gate.clone(), arrived.clone(), during.clone());
        handles.push(spawn(async move {
            if arrived.fetch_add(1, SeqCst) + 1 == n {
                during.store(memory() as u64, SeqCst);
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
    tokio::time::sleep(Duration::from_millis(200)).await;
    let each = |bytes: f64| (bytes - before).max(0.0) / n as f64;
    result.extras = format!(" bytes={:.0} after_bytes={:.0}", each(during.load(SeqCst) as f64), each(memory()));
    result
}

async fn scale_timers(sleepers: u64) -> Outcome {
    let pieces = if sleepers <= 1000 { 20 } else if sleepers <= 100_000 { 4 } else { 1 };
    let mean = 1_000_000_000 / pieces;
    let mut handles = Vec::with_capacity(sleepers as usize);
    let mut late = Vec::with_capacity((sleepers * pieces) as usize);
    let (before, _) = usage();
    for place in 0..sleepers {
        handles.push(spawn(async move {
            let mut seed = place.wrapping_mul(0x9e3779b97f4a7c15) + 1;
            let mut mine = Vec::with_capacity(pieces as usize);
            for _ in 0..pieces {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let wanted = Duration::from_nanos(mean / 2 + (seed >> 33) % mean);
                let from = Instant::now();
                tokio::time::sleep(wanted).await;
                let slept = from.elapsed();
                if slept < wanted {
                    fail("a sleep ended early".to_string());
                }
                mine.push((slept - wanted).as_nanos() as u64);
            }
            mine
        }));
    }
    for handle in handles {
        late.append(&mut handle.await.unwrap());
    }
    let ns = usage().0 - before;
    Outcome { n: sleepers * pieces, ns, extras: percentiles("late_", &mut late) }
}

async fn sized<const WORDS: usize>(n: u64) -> Outcome {
    let (sender, mut receiver) = mpsc::channel::<[u64; WORDS]>(16);
    let start = Instant::now();
    spawn(async move {
        let mut value = [0; WORDS];
        for i in 0..n {
            value[0] = i;
            value[WORDS - 1] = i;
            sender.send(value).await.unwrap();
        }
    });
    let mut received = 0;
    while let Some(value) = receiver.recv().await {
        if value[0] != received || value[WORDS - 1] != received {
            fail(format!("value {received} is damaged"));
        }
        received += 1;
    }
    if received != n {
        fail(format!("{received} values were received"));
    }
    outcome(n, start)
}

async fn scale_size(bytes: u64, scale: f64) -> Outcome {
    let n = scaled(if bytes <= 256 { 1_000_000 } else { 268_435_456 / bytes }, scale);
    match bytes {
        8 => sized::<1>(n).await,
        64 => sized::<8>(n).await,
        256 => sized::<32>(n).await,
        1024 => sized::<128>(n).await,
        4096 => sized::<512>(n).await,
        16384 => sized::<2048>(n).await,
        65536 => Box::pin(sized::<8192>(n)).await,
        _ => unavailable("a value's size is part of the program"),
    }
}

/// The arms of a select are part of the program's text: the names of the receivers make one loop for each number of them.
macro_rules! select_loop {
    ($receivers:expr, $n:expr, $($name:ident)+) => {{
        let mut receivers = $receivers.into_iter();
        $(let mut $name = receivers.next().unwrap();)+
        let mut sum = 0;
        for _ in 0..$n {
            tokio::select! {
                $(Some(value) = $name.recv() => sum += value,)+
                else => break,
            }
        }
        sum
    }};
}

async fn scale_arms(arms: u64, n: u64) -> Outcome {
    let each = n.div_ceil(arms);
    let n = each * arms;
    let produce = |arm: u64| {
        let (sender, receiver) = mpsc::channel::<u64>(1);
        spawn(async move {
            for value in arm * each..(arm + 1) * each {
                sender.send(value).await.unwrap();
            }
        });
        receiver
    };
    let start = Instant::now();
    let c: Vec<_> = (0..arms).map(produce).collect();
    let sum: u64 = match arms {
        1 => select_loop!(c, n, a),
        2 => select_loop!(c, n, a b),
        4 => select_loop!(c, n, a b d e),
        8 => select_loop!(c, n, a b d e f g h i),
        16 => select_loop!(c, n, a b d e f g h i j k l m o p q r),
        _ => unavailable("so many arms were not written out"),
    };
    if sum != n * (n - 1) / 2 {
        fail(format!("the sum of the values is {sum}"));
    }
    outcome(n, start)
}

async fn latency(busy: u64, calls: u64) -> Outcome {
    const CALLERS: u64 = 8;
    let over = Arc::new(AtomicBool::new(false));
    let mut workers = Vec::new();
    let (mut callers, mut receivers) = (Vec::new(), Vec::new());
    for _ in 0..busy {
        let over = over.clone();
        workers.push(spawn(async move {
            let (mut x, mut turns) = (1u64, 0);
            while !over.load(Relaxed) {
                for _ in 0..1500 {
                    x = x.wrapping_mul(6364136223846793005).wrapping_add(1);
                }
                turns += 1;
                yield_now().await;
            }
            turns + (x == 0) as u64
        }));
    }
    for place in 0..CALLERS {
        let (sender, mut receiver) = mpsc::channel::<Instant>(1);
        let wanted = Duration::from_nanos(500_000 + place * 10_000);
        callers.push(spawn(async move {
            let mut late = Vec::with_capacity(calls as usize);
            for _ in 0..calls {
                let from = Instant::now();
                tokio::time::sleep(wanted).await;
                let now = Instant::now();
                late.push((now - from).saturating_sub(wanted).as_nanos() as u64);
                sender.send(now).await.unwrap();
            }
            late
        }));
        receivers.push(spawn(async move {
            let mut wake = Vec::with_capacity(calls as usize);
            while let Some(sent) = receiver.recv().await {
                wake.push(sent.elapsed().as_nanos() as u64);
            }
            wake
        }));
    }
    let (mut late, mut wake) = (Vec::new(), Vec::new());
    for caller in callers {
        late.append(&mut caller.await.unwrap());
    }
    for receiver in receivers {
        wake.append(&mut receiver.await.unwrap());
    }
    over.store(true, Relaxed);
    let mut turns = 0;
    for worker in workers {
        turns += worker.await.unwrap();
    }
    if busy > 0 && turns == 0 || wake.len() as u64 != CALLERS * calls {
        fail("the busy tasks never ran, or calls were lost".to_string());
    }
    let ns = wake.iter().sum::<u64>() as f64;
    let extras = percentiles("", &mut wake) + &percentiles("late_", &mut late);
    Outcome { n: CALLERS * calls, ns, extras }
}

async fn tail(one_in: u64, slow: u64) -> Outcome {
    const LONG: Duration = Duration::from_millis(3);
    let calls = one_in * slow;
    let (there, mut receiver) = mpsc::channel::<Instant>(1);
    let (answer, mut back) = mpsc::channel::<Instant>(1);
    let receive = spawn(async move {
        let (mut all, mut slowest) = (Vec::with_capacity(calls as usize), Vec::with_capacity(slow as usize));
        while let Some(sent) = receiver.recv().await {
            let ns = sent.elapsed().as_nanos() as u64;
            all.push(ns);
            if all.len() as u64 % one_in == 0 {
                slowest.push(ns);
            }
            answer.send(sent).await.unwrap();
        }
        (all, slowest)
    });
    let send = spawn(async move {
        for i in 1..=calls {
            let sent = Instant::now();
            there.send(sent).await.unwrap();
            if i % one_in == 0 {
                while sent.elapsed() < LONG {}
            }
            if back.recv().await.unwrap() != sent {
                fail("an answer to another send".to_string());
            }
        }
    });
    send.await.unwrap();
    let (mut all, mut slowest) = receive.await.unwrap();
    if all.len() as u64 != calls || slowest.len() as u64 != slow {
        fail("sends were lost".to_string());
    }
    let ns = all.iter().sum::<u64>() as f64;
    let extras = percentiles("", &mut all) + &percentiles("long_", &mut slowest);
    Outcome { n: calls, ns, extras }
}

async fn idle(n: u64) -> Outcome {
    const SECONDS: u64 = 2;
    let gate = Arc::new(Semaphore::new(0));
    let arrived = Arc::new(AtomicU64::new(0));
    let mut handles = Vec::with_capacity(n as usize);
    for _ in 0..n {
        let (gate, arrived) = (gate.clone(), arrived.clone());
        handles.push(spawn(async move {
            arrived.fetch_add(1, SeqCst);
            gate.acquire().await.is_err()
        }));
    }
    while arrived.load(SeqCst) < n {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let before = usage();
    tokio::time::sleep(Duration::from_secs(SECONDS)).await;
    let after = usage();
    gate.close();
    for handle in handles {
        if !handle.await.unwrap() {
            fail("a task did not wait".to_string());
        }
    }
    let extras = format!(" switches_per_s={:.1}", (after.1 - before.1) as f64 / SECONDS as f64);
    Outcome { n: SECONDS, ns: after.0 - before.0, extras }
}

pub async fn grow(name: &str, scale: f64, parameter: u64) -> Outcome {
    match name {
        "scale_yield" => scale_yield(parameter, scaled(4_000_000, scale)).await,
        "scale_pairs" => scale_pairs(parameter, scaled(500_000, scale)).await,
        "scale_parked" => scale_parked(parameter).await,
        "scale_timers" => scale_timers(parameter).await,
        "scale_capacity" if parameter == 0 => unavailable("a channel of Tokio has room for one value at least"),
        "scale_capacity" => spsc(parameter as usize, scaled(2_000_000, scale)).await,
        "scale_size" => scale_size(parameter, scale).await,
        "scale_arms" => scale_arms(parameter, scaled(1_000_000, scale)).await,
        "latency" => latency(parameter, scaled(2000, scale)).await,
        "tail" => tail(parameter, scaled(400, scale)).await,
        "idle" => idle(parameter).await,
        _ => fail(format!("there is no benchmark '{name}'")),
    }
}
