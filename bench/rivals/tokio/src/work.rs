//! The programs of ../../../work for Tokio's tasks: the same work, the same checks, as programs on Tokio usually write it.
//!
//! Channels with several receivers are flume's; an answer comes by a oneshot channel; where the others have a condition, this has a
//! watch channel or a oneshot behind a mutex of the standard library. Cancelling is aborting the tasks of a JoinSet.

use crate::scale::{memory, percentiles, usage};
use crate::{fail, scaled, Outcome};
use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch, Notify, RwLock, Semaphore};
use tokio::task::{spawn, yield_now, JoinSet};
use tokio::time::{sleep, sleep_until, timeout};

const STEPS_PER_US: u64 = 750;

#[inline(never)]
fn compute(mut x: u64, steps: u64) -> u64 {
    for _ in 0..steps {
        x = black_box(x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407));
    }
    x
}

fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *seed >> 33
}

/// The measured region: wall time, and CPU time of the whole process.
struct Region {
    start: Instant,
    cpu: f64,
}

impl Region {
    fn begin() -> Region {
        Region { cpu: usage().0, start: Instant::now() }
    }

    fn end(self, n: u64, extras: String) -> Outcome {
        let ns = self.start.elapsed().as_nanos() as f64;
        let cpu = (usage().0 - self.cpu) / n as f64;
        Outcome { n, ns, extras: format!(" cpu_ns={cpu:.1}{extras}") }
    }
}

async fn join_all(mut set: JoinSet<()>) {
    while let Some(ended) = set.join_next().await {
        ended.unwrap();
    }
}

async fn actors(scale: f64) -> Outcome {
    const ACTORS: u64 = 1000;
    const TOKENS: u64 = 64;
    let hops = scaled(2_000_000, scale) / TOKENS + 1;
    let (inboxes, mut receivers): (Vec<_>, Vec<_>) = (0..ACTORS).map(|_| mpsc::channel::<(u64, u64)>(TOKENS as usize)).unzip();
    let inboxes = Arc::new(inboxes);
    let (done, mut ends) = mpsc::channel(TOKENS as usize);
    let (stop, stopped) = watch::channel(false);
    let handled = Arc::new(AtomicU64::new(0));
    let region = Region::begin();
    let mut set = JoinSet::new();
    for mut inbox in receivers.drain(..) {
        let (inboxes, done, handled, mut stopped) = (inboxes.clone(), done.clone(), handled.clone(), stopped.clone());
        set.spawn(async move {
            let mut count = 0;
            loop {
                let (mut left, mut seed) = tokio::select! {
                    Some(message) = inbox.recv() => message,
                    _ = stopped.changed() => break,
                };
                count += 1;
                left -= 1;
                if left == 0 {
                    done.send(seed).await.unwrap();
                } else {
                    let to = (random(&mut seed) % ACTORS) as usize;
                    inboxes[to].send((left, seed)).await.unwrap();
                }
            }
            handled.fetch_add(count, Relaxed);
        });
    }
    for i in 0..TOKENS {
        inboxes[(i * 15 % ACTORS) as usize].send((hops, i)).await.unwrap();
    }
    for _ in 0..TOKENS {
        ends.recv().await.unwrap();
    }
    stop.send(true).unwrap();
    join_all(set).await;
    let result = region.end(hops * TOKENS, String::new());
    if handled.load(Relaxed) != hops * TOKENS {
        fail(format!("{} messages were handled", handled.load(Relaxed)));
    }
    result
}

async fn request(scale: f64) -> Outcome {
    const CLIENTS: u64 = 64;
    let each = scaled(1_000_000, scale) / CLIENTS + 1;
    let (requests, receiver) = flume::bounded::<(u64, oneshot::Sender<u64>)>(16);
    let region = Region::begin();
    let (mut servers, mut clients) = (JoinSet::new(), JoinSet::new());
    for _ in 0..8 {
        let receiver = receiver.clone();
        servers.spawn(async move {
            while let Ok((question, answer)) = receiver.recv_async().await {
                answer.send(question * 2 + 1).unwrap();
            }
        });
    }
    for place in 0..CLIENTS {
        let requests = requests.clone();
        clients.spawn(async move {
            for i in 0..each {
                let question = place * each + i;
                let (answer, answered) = oneshot::channel();
                requests.send_async((question, answer)).await.unwrap();
                if answered.await.unwrap() != question * 2 + 1 {
                    fail("the answer to another question".to_string());
                }
            }
        });
    }
    join_all(clients).await;
    drop(requests);
    join_all(servers).await;
    region.end(each * CLIENTS, String::new())
}

async fn fanout(count: u64, us: u64) -> Outcome {
    const CAPACITY: usize = 128;
    let (jobs, todo) = flume::bounded::<(u64, u64)>(CAPACITY);
    let (results, mut done) = mpsc::channel::<(u64, u64)>(CAPACITY);
    let region = Region::begin();
    let mut set = JoinSet::new();
    for _ in 0..16 {
        let (todo, results) = (todo.clone(), results.clone());
        set.spawn(async move {
            while let Ok((number, _)) = todo.recv_async().await {
                results.send((number, compute(number, us * STEPS_PER_US))).await.unwrap();
            }
        });
    }
    set.spawn(async move {
        for i in 0..count {
            jobs.send_async((i, 0)).await.unwrap();
        }
    });
    let mut sum = 0;
    for _ in 0..count {
        sum += done.recv().await.unwrap().0;
    }
    join_all(set).await;
    if sum != count * (count - 1) / 2 {
        fail(format!("the sum of the jobs is {sum}"));
    }
    region.end(count, String::new())
}

async fn service(rate: u64, scale: f64) -> Outcome {
    const WORK_US: u64 = 10;
    let count = scaled(rate, scale);
    let (queries, receiver) = flume::bounded::<(u64, oneshot::Sender<u64>)>(64);
    let done: Arc<Vec<AtomicU64>> = Arc::new((0..count).map(|_| AtomicU64::new(0)).collect());
    let sum = Arc::new(AtomicU64::new(0));
    let region = Region::begin();
    let (mut backends, mut requests) = (JoinSet::new(), JoinSet::new());
    for _ in 0..4 {
        let receiver = receiver.clone();
        backends.spawn(async move {
            while let Ok((question, answer)) = receiver.recv_async().await {
                answer.send(question + 1).unwrap();
            }
        });
    }
    let begin = Instant::now();
    for number in 0..count {
        let due = begin + Duration::from_nanos(number * 1_000_000_000 / rate);
        sleep_until(due.into()).await;
        let (queries, done, sum) = (queries.clone(), done.clone(), sum.clone());
        requests.spawn(async move {
            let query = async {
                let (answer, answered) = oneshot::channel();
                queries.send_async((number, answer)).await.unwrap();
                answered.await.unwrap()
            };
            let answer = match timeout(Duration::from_secs(1), query).await {
                Ok(answer) if answer == number + 1 => answer,
                _ => fail("a request was late, or has the answer to another question".to_string()),
            };
            black_box(compute(answer, WORK_US * STEPS_PER_US));
            sum.fetch_add(answer, Relaxed);
            done[number as usize].store(due.elapsed().as_nanos() as u64, Relaxed);
        });
    }
    join_all(requests).await;
    drop(queries);
    join_all(backends).await;
    let mut result = region.end(count, String::new());
    if sum.load(Relaxed) != count * (count + 1) / 2 {
        fail(format!("the sum is {}", sum.load(Relaxed)));
    }
    let mut samples: Vec<u64> = done.iter().map(|ns| ns.load(Relaxed)).collect();
    result.extras += &percentiles("", &mut samples);
    result
}

/// Opens when as many have come as were announced; used again and again.
struct Countdown {
    left: AtomicU64,
    open: Notify,
}

impl Countdown {
    fn new() -> Arc<Countdown> {
        Arc::new(Countdown { left: AtomicU64::new(0), open: Notify::new() })
    }

    fn expect(&self, n: u64) {
        self.left.store(n, Relaxed);
    }

    fn arrive(&self) {
        if self.left.fetch_sub(1, std::sync::atomic::Ordering::AcqRel) == 1 {
            self.open.notify_one();
        }
    }
}

async fn broadcast_chan(scale: f64) -> Outcome {
    const SUBSCRIBERS: u64 = 1000;
    let rounds = scaled(500, scale);
    let total = Arc::new(AtomicU64::new(0));
    let pending = Countdown::new();
    let region = Region::begin();
    let mut set = JoinSet::new();
    let mut inboxes = Vec::new();
    for _ in 0..SUBSCRIBERS {
        let (inbox, mut receiver) = mpsc::channel::<u64>(1);
        let (total, pending) = (total.clone(), pending.clone());
        inboxes.push(inbox);
        set.spawn(async move {
            let mut sum = 0;
            while let Some(value) = receiver.recv().await {
                sum += value;
                pending.arrive();
            }
            total.fetch_add(sum, Relaxed);
        });
    }
    for round in 1..=rounds {
        pending.expect(SUBSCRIBERS);
        for inbox in &inboxes {
            inbox.send(round).await.unwrap();
        }
        pending.open.notified().await;
    }
    drop(inboxes);
    join_all(set).await;
    if total.load(Relaxed) != rounds * (rounds + 1) / 2 * SUBSCRIBERS {
        fail("a delivery is missing".to_string());
    }
    region.end(rounds * SUBSCRIBERS, String::new())
}

async fn broadcast_cond(scale: f64) -> Outcome {
    const WAITERS: u64 = 1000;
    let rounds = scaled(200, scale);
    let total = Arc::new(AtomicU64::new(0));
    let pending = Countdown::new();
    let (generation, receiver) = watch::channel(0u64);
    let region = Region::begin();
    let mut set = JoinSet::new();
    for _ in 0..WAITERS {
        let (total, pending, mut receiver) = (total.clone(), pending.clone(), receiver.clone());
        set.spawn(async move {
            let (mut last, mut sum) = (0, 0);
            while last < rounds {
                last = *receiver.wait_for(|now| *now != last).await.unwrap();
                sum += last;
                pending.arrive();
            }
            total.fetch_add(sum, Relaxed);
        });
    }
    for round in 1..=rounds {
        pending.expect(WAITERS);
        generation.send(round).unwrap();
        pending.open.notified().await;
    }
    join_all(set).await;
    if total.load(Relaxed) != rounds * (rounds + 1) / 2 * WAITERS {
        fail("a wake is missing".to_string());
    }
    region.end(rounds * WAITERS, String::new())
}

async fn rwlock(scale: f64) -> Outcome {
    const FIBERS: u64 = 64;
    let each = scaled(200_000, scale) / FIBERS + 1;
    let table = Arc::new(RwLock::new(([0u64; 256], 0u64)));
    let written = Arc::new(AtomicU64::new(0));
    let region = Region::begin();
    let mut set = JoinSet::new();
    for place in 0..FIBERS {
        let (table, written) = (table.clone(), written.clone());
        set.spawn(async move {
            let mut seed = place + 1;
            let mut waits = Vec::with_capacity(each as usize);
            for i in 0..each {
                let from = (random(&mut seed) % 256) as usize;
                let write = random(&mut seed) % 20 == 0;
                let before = Instant::now();
                if write {
                    let mut inside = table.write().await;
                    waits.push(before.elapsed().as_nanos() as u64);
                    inside.1 += 1;
                    inside.0[from] += (compute(from as u64, STEPS_PER_US / 5) != 0) as u64;
                    drop(inside);
                    written.fetch_add(1, Relaxed);
                } else {
                    let inside = table.read().await;
                    waits.push(before.elapsed().as_nanos() as u64);
                    black_box(compute(inside.0[from], STEPS_PER_US / 5));
                }
                black_box(compute(seed, STEPS_PER_US));
                if i % 16 == 0 {
                    yield_now().await;
                }
            }
            waits
        });
    }
    let mut waits = Vec::new();
    while let Some(mine) = set.join_next().await {
        waits.append(&mut mine.unwrap());
    }
    let mut result = region.end(each * FIBERS, String::new());
    if table.read().await.1 != written.load(Relaxed) {
        fail("a write was lost".to_string());
    }
    result.extras += &percentiles("", &mut waits);
    result
}

/// A task here has no stack to go deep on: what it needs across its wait is part of the future.
async fn waves(scale: f64) -> Outcome {
    const FIBERS: u64 = 1000;
    const DEPTH: usize = 24;
    let waves = scaled(50, scale);
    let region = Region::begin();
    let mut sum = 0;
    for _ in 0..waves {
        let door = Arc::new(Semaphore::new(0));
        let arrived = Countdown::new();
        arrived.expect(FIBERS);
        let mut set = JoinSet::new();
        for _ in 0..FIBERS {
            let (door, arrived) = (door.clone(), arrived.clone());
            set.spawn(async move {
                let mut frames = [[0u8; 512]; DEPTH];
                frames.iter_mut().for_each(|frame| frame[0] = 1);
                black_box(&mut frames);
                arrived.arrive();
                let open = door.acquire().await.is_err() as u64;
                open + frames.iter().map(|frame| frame[0] as u64).sum::<u64>()
            });
        }
        arrived.open.notified().await;
        door.close();
        while let Some(depth) = set.join_next().await {
            sum += depth.unwrap();
        }
    }
    if sum != waves * FIBERS * (DEPTH as u64 + 1) {
        fail(format!("the sum is {sum}"));
    }
    region.end(waves * FIBERS, String::new())
}

fn grow_tree(level: u64, count: Arc<AtomicU64>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        count.fetch_add(1, Relaxed);
        if level > 0 {
            let mut set = JoinSet::new();
            for _ in 0..3 {
                set.spawn(grow_tree(level - 1, count.clone()));
            }
            join_all(set).await;
        }
    })
}

async fn nest(scale: f64) -> Outcome {
    const TREE: u64 = 3 + 9 + 27 + 81;
    let rounds = scaled(4000, scale);
    let count = Arc::new(AtomicU64::new(0));
    let region = Region::begin();
    for _ in 0..rounds {
        let mut set = JoinSet::new();
        for _ in 0..3 {
            set.spawn(grow_tree(3, count.clone()));
        }
        join_all(set).await;
    }
    if count.load(Relaxed) != rounds * TREE {
        fail(format!("{} children ran", count.load(Relaxed)));
    }
    region.end(rounds * TREE, String::new())
}

async fn timeouts(scale: f64) -> Outcome {
    const PAIRS: u64 = 64;
    const LONG: Duration = Duration::from_secs(10);
    let each = scaled(1_000_000, scale) / (4 * PAIRS) + 1;
    let total = Arc::new(AtomicU64::new(0));
    let region = Region::begin();
    let mut set = JoinSet::new();
    for _ in 0..PAIRS {
        let (there, mut questions) = mpsc::channel::<u64>(1);
        let (answers, mut back) = mpsc::channel::<u64>(1);
        let total = total.clone();
        set.spawn(async move {
            for _ in 0..each {
                let value = timeout(LONG, questions.recv()).await.unwrap().unwrap();
                timeout(LONG, answers.send(value + 1)).await.unwrap().unwrap();
            }
        });
        set.spawn(async move {
            let mut value = 0;
            for _ in 0..each {
                timeout(LONG, there.send(value)).await.unwrap().unwrap();
                value = timeout(LONG, back.recv()).await.unwrap().unwrap();
            }
            total.fetch_add(value, Relaxed);
        });
    }
    join_all(set).await;
    if total.load(Relaxed) != each * PAIRS {
        fail(format!("the sum is {}", total.load(Relaxed)));
    }
    region.end(4 * each * PAIRS, String::new())
}

pub fn cold_child(workers: usize) -> ! {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_time().build().unwrap();
    let one = runtime.block_on(async { spawn(async { 1 }).await.unwrap() });
    drop(runtime);
    std::process::exit((one != 1) as i32)
}

fn cold(scale: f64, workers: usize) -> Outcome {
    let n = scaled(200, scale);
    let children = || {
        let mut u: libc::rusage = unsafe { std::mem::zeroed() };
        unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &mut u) };
        let ns = |t: libc::timeval| t.tv_sec as f64 * 1e9 + t.tv_usec as f64 * 1e3;
        ns(u.ru_utime) + ns(u.ru_stime)
    };
    let program = std::env::current_exe().unwrap();
    let before = children();
    let region = Region::begin();
    for _ in 0..n {
        let status = std::process::Command::new(&program).args(["cold_child", &workers.to_string()]).status();
        if !status.is_ok_and(|status| status.success()) {
            fail("a process failed".to_string());
        }
    }
    let mut result = region.end(n, String::new());
    result.extras = format!(" cpu_ns={:.1}", (children() - before) / n as f64);
    result
}

async fn chameneos(scale: f64) -> Outcome {
    struct Place {
        left: u64,
        first: Option<(u32, oneshot::Sender<u32>)>,
    }
    let meetings = scaled(300_000, scale);
    let place = Arc::new(Mutex::new(Place { left: meetings, first: None }));
    let met = Arc::new(AtomicU64::new(0));
    let complement = |a: u32, b: u32| if a == b { a } else { 3 - a - b };
    let region = Region::begin();
    let mut set = JoinSet::new();
    for me in 0..10u32 {
        let (place, met) = (place.clone(), met.clone());
        set.spawn(async move {
            let (mut mine, mut count) = (me % 3, 0);
            loop {
                let waiting = {
                    let mut place = place.lock().unwrap();
                    if place.left == 0 {
                        break;
                    }
                    match place.first.take() {
                        Some((theirs, partner)) => {
                            place.left -= 1;
                            partner.send(mine).unwrap();
                            mine = complement(mine, theirs);
                            None
                        }
                        None => {
                            let (sender, receiver) = oneshot::channel();
                            place.first = Some((mine, sender));
                            Some(receiver)
                        }
                    }
                };
                if let Some(second) = waiting {
                    mine = complement(mine, second.await.unwrap());
                }
                count += 1;
            }
            met.fetch_add(count, Relaxed);
        });
    }
    join_all(set).await;
    if met.load(Relaxed) != 2 * meetings {
        fail(format!("{} creatures met", met.load(Relaxed)));
    }
    region.end(meetings, String::new())
}

fn tree_hash(mut x: u64) -> u64 {
    x ^= x >> 33;
    x = x.wrapping_mul(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x = x.wrapping_mul(0xc4ceb9fe1a85ec53);
    x ^ x >> 33
}

fn tree_child(node: u64, i: u64) -> u64 {
    tree_hash(node.wrapping_mul(8191).wrapping_add(i + 1))
}

fn tree_children(node: u64, depth: u32) -> u64 {
    match depth {
        0 => 500,
        1..200 if tree_hash(node) % 1000 < 122 => 8,
        _ => 0,
    }
}

fn tree_alone(node: u64, depth: u32) -> u64 {
    1 + (0..tree_children(node, depth)).map(|i| tree_alone(tree_child(node, i), depth + 1)).sum::<u64>()
}

fn tree_count(node: u64, depth: u32) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        let n = tree_children(node, depth);
        if depth > 6 || n == 0 {
            return tree_alone(node, depth);
        }
        let tasks: Vec<_> = (0..n).map(|i| spawn(tree_count(tree_child(node, i), depth + 1))).collect();
        let mut sum = 1;
        for task in tasks {
            sum += task.await.unwrap();
        }
        sum
    })
}

async fn tree(scale: f64) -> Outcome {
    let rounds = scaled(40, scale);
    let expected: u64 = (0..rounds).map(|i| tree_alone(i + 1, 0)).sum();
    let region = Region::begin();
    let mut nodes = 0;
    for i in 0..rounds {
        nodes += tree_count(i + 1, 0).await;
    }
    if nodes != expected {
        fail(format!("{nodes} nodes were counted"));
    }
    region.end(nodes, String::new())
}

/// The halves are owned by their tasks, so that no borrow crosses a spawn.
fn merge_sort(mut all: Vec<u64>) -> Pin<Box<dyn Future<Output = Vec<u64>> + Send>> {
    Box::pin(async move {
        if all.len() <= 4096 {
            all.sort_unstable();
            return all;
        }
        let right = spawn(merge_sort(all.split_off(all.len() / 2)));
        let left = merge_sort(all).await;
        let right = right.await.unwrap();
        let mut merged = Vec::with_capacity(left.len() + right.len());
        let (mut i, mut k) = (0, 0);
        while i < left.len() && k < right.len() {
            if right[k] < left[i] {
                merged.push(right[k]);
                k += 1;
            } else {
                merged.push(left[i]);
                i += 1;
            }
        }
        merged.extend_from_slice(&left[i..]);
        merged.extend_from_slice(&right[k..]);
        merged
    })
}

async fn sort(scale: f64) -> Outcome {
    let n = scaled(2_000_000, scale);
    let mut seed = 1;
    let all: Vec<u64> = (0..n).map(|_| random(&mut seed)).collect();
    let sum = all.iter().fold(0u64, |sum, x| sum.wrapping_add(*x));
    let region = Region::begin();
    let sorted = merge_sort(all).await;
    let result = region.end(n, String::new());
    if !sorted.is_sorted() || sorted.iter().fold(0u64, |sum, x| sum.wrapping_add(*x)) != sum {
        fail("elements are out of order, or lost".to_string());
    }
    result
}

async fn pipeline(amount: u64, pipelines: u64, capacity: usize, steps: [u64; 4]) -> Outcome {
    let each = amount / pipelines + 1;
    let items = Arc::new(AtomicU64::new(0));
    let region = Region::begin();
    let mut set = JoinSet::new();
    for _ in 0..pipelines {
        let (out, mut from) = mpsc::channel::<(u64, u64)>(capacity);
        set.spawn(async move {
            for i in 0..each {
                out.send((i, i)).await.unwrap();
            }
        });
        for n in steps {
            let (out, next) = mpsc::channel(capacity);
            let mut input = std::mem::replace(&mut from, next);
            set.spawn(async move {
                while let Some((number, value)) = input.recv().await {
                    out.send((number, compute(value, n))).await.unwrap();
                }
            });
        }
        let items = items.clone();
        set.spawn(async move {
            let mut next = 0;
            while let Some((number, _)) = from.recv().await {
                if number != next {
                    fail(format!("item {number} is out of order"));
                }
                next += 1;
            }
            items.fetch_add(next, Relaxed);
        });
    }
    join_all(set).await;
    if items.load(Relaxed) != each * pipelines {
        fail(format!("{} items came through", items.load(Relaxed)));
    }
    region.end(each * pipelines, String::new())
}

async fn sessions(scale: f64) -> Outcome {
    let count = scaled(100_000, scale);
    let (inboxes, mut receivers): (Vec<_>, Vec<_>) = (0..count).map(|_| mpsc::channel::<u64>(1)).unzip();
    let received = Arc::new(AtomicU64::new(0));
    let started = Countdown::new();
    started.expect(count);
    let region = Region::begin();
    let before = memory();
    let mut set = JoinSet::new();
    for mut inbox in receivers.drain(..) {
        let (received, started) = (received.clone(), started.clone());
        set.spawn(async move {
            started.arrive();
            loop {
                timeout(Duration::from_secs(10), inbox.recv()).await.unwrap().unwrap();
                received.fetch_add(1, Relaxed);
            }
        });
    }
    started.open.notified().await;
    let mut seed = 1;
    for i in 0..2 * count {
        let to = (i.wrapping_add(random(&mut seed)) % count) as usize;
        inboxes[to].send(i).await.unwrap();
    }
    while received.load(Relaxed) < 2 * count {
        yield_now().await;
    }
    let bytes = (memory() - before) / count as f64;
    set.abort_all();
    let mut cancelled = 0;
    while let Some(ended) = set.join_next().await {
        cancelled += ended.is_err_and(|error| error.is_cancelled()) as u64;
    }
    if cancelled != count {
        fail(format!("{cancelled} sessions were cancelled"));
    }
    region.end(count, format!(" bytes={bytes:.0}"))
}

async fn limited(scale: f64) -> Outcome {
    let count = scaled(20_000, scale);
    let permits = Arc::new(Semaphore::new(64));
    let done = Arc::new(AtomicU64::new(0));
    let region = Region::begin();
    let mut set = JoinSet::new();
    for number in 0..count {
        let (permits, done) = (permits.clone(), done.clone());
        set.spawn(async move {
            let _permit = permits.acquire().await.unwrap();
            sleep(Duration::from_micros(200)).await;
            black_box(compute(number, 2 * STEPS_PER_US));
            done.fetch_add(1, Relaxed);
        });
    }
    join_all(set).await;
    if done.load(Relaxed) != count {
        fail(format!("{} were done", done.load(Relaxed)));
    }
    region.end(count, String::new())
}

async fn bursts(scale: f64) -> Outcome {
    const JOBS: u64 = 30;
    const JOB_US: u64 = 20;
    let count = scaled(200, scale);
    let sum = Arc::new(AtomicU64::new(0));
    let mut busy = Duration::ZERO;
    let region = Region::begin();
    for _ in 0..count {
        sleep(Duration::from_millis(1)).await;
        let begin = Instant::now();
        let mut set = JoinSet::new();
        for number in 0..JOBS {
            let sum = sum.clone();
            set.spawn(async move {
                black_box(compute(number, JOB_US * STEPS_PER_US));
                sum.fetch_add(number, Relaxed);
            });
        }
        join_all(set).await;
        busy += begin.elapsed();
    }
    if sum.load(Relaxed) != count * JOBS * (JOBS - 1) / 2 {
        fail(format!("the sum is {}", sum.load(Relaxed)));
    }
    let mut outcome = region.end(count, String::new());
    outcome.ns = busy.as_nanos() as f64;
    outcome
}

const CACHE_VALUES: u32 = 4096;
const CACHE_BUCKETS: u32 = 8192;

#[derive(Clone, Default)]
struct Entry {
    key: u32,
    newer: u32,
    older: u32,
    chain: u32,
    value: u64,
}

/// Forgets the value that was not used for the longest time.
struct Cache {
    used: u32,
    buckets: Vec<u32>,
    entries: Vec<Entry>,
    hits: u64,
    misses: u64,
}

impl Cache {
    fn new() -> Cache {
        Cache {
            used: 0,
            buckets: vec![0; CACHE_BUCKETS as usize],
            entries: vec![Entry::default(); CACHE_VALUES as usize + 1],
            hits: 0,
            misses: 0,
        }
    }

    fn entry(&mut self, i: u32) -> &mut Entry {
        &mut self.entries[i as usize]
    }

    fn bucket(key: u32) -> usize {
        ((key.wrapping_mul(2654435761) >> 16) % CACHE_BUCKETS) as usize
    }

    fn find(&self, key: u32) -> u32 {
        let mut i = self.buckets[Cache::bucket(key)];
        while i != 0 && self.entries[i as usize].key != key {
            i = self.entries[i as usize].chain;
        }
        i
    }

    fn take_out(&mut self, i: u32) {
        let (newer, older) = (self.entry(i).newer, self.entry(i).older);
        self.entry(newer).older = older;
        self.entry(older).newer = newer;
    }

    fn put_first(&mut self, i: u32) {
        let first = self.entry(0).older;
        self.entry(i).newer = 0;
        self.entry(i).older = first;
        self.entry(first).newer = i;
        self.entry(0).older = i;
    }

    fn look_up(&mut self, key: u32) -> Option<u64> {
        let i = self.find(key);
        if i == 0 {
            self.misses += 1;
            return None;
        }
        self.take_out(i);
        self.put_first(i);
        self.hits += 1;
        Some(self.entry(i).value)
    }

    fn make_room(&mut self) -> u32 {
        if self.used < CACHE_VALUES {
            self.used += 1;
            return self.used;
        }
        let oldest = self.entry(0).newer;
        let (key, chain) = (self.entry(oldest).key, self.entry(oldest).chain);
        let bucket = Cache::bucket(key);
        let mut i = self.buckets[bucket];
        if i == oldest {
            self.buckets[bucket] = chain;
        } else {
            while self.entry(i).chain != oldest {
                i = self.entry(i).chain;
            }
            self.entry(i).chain = chain;
        }
        self.take_out(oldest);
        oldest
    }

    fn store(&mut self, key: u32, value: u64) {
        if self.find(key) != 0 {
            return;
        }
        let (i, bucket) = (self.make_room(), Cache::bucket(key));
        let chain = std::mem::replace(&mut self.buckets[bucket], i);
        let entry = self.entry(i);
        (entry.key, entry.value, entry.chain) = (key, value, chain);
        self.put_first(i);
    }
}

async fn cache(scale: f64) -> Outcome {
    const CLIENTS: u64 = 200;
    const KEYS: u64 = 16384;
    const MISS_STEPS: u64 = 20;
    let each = scaled(2_000_000, scale) / CLIENTS + 1;
    let cache = Arc::new(Mutex::new(Cache::new()));
    let region = Region::begin();
    let mut set = JoinSet::new();
    for number in 0..CLIENTS {
        let cache = cache.clone();
        set.spawn(async move {
            let mut seed = number + 1;
            for _ in 0..each {
                let key = (random(&mut seed) % KEYS * (random(&mut seed) % KEYS) / KEYS) as u32;
                let found = cache.lock().unwrap().look_up(key);
                let value = compute(key as u64, MISS_STEPS);
                match found {
                    None => cache.lock().unwrap().store(key, value),
                    Some(known) if known != value => fail("the value of another key".to_string()),
                    Some(_) => {}
                }
            }
        });
    }
    join_all(set).await;
    let mut cache = cache.lock().unwrap();
    let (mut i, mut listed) = (cache.entry(0).older, 0);
    while i != 0 {
        listed += 1;
        i = cache.entry(i).older;
    }
    if cache.hits + cache.misses != each * CLIENTS || listed != cache.used {
        fail("the cache is damaged".to_string());
    }
    region.end(each * CLIENTS, String::new())
}

struct Line {
    sum: u64,
    size: usize,
    text: [u8; 56],
}

async fn log(scale: f64) -> Outcome {
    const SENDERS: u64 = 64;
    const CAPACITY: usize = 256;
    const TEXT: u64 = 56;
    const STEPS: u64 = 40;
    const BUFFER: usize = 65536;
    const PAUSE: Duration = Duration::from_millis(10);
    let each = scaled(1_000_000, scale) / SENDERS + 1;
    let region = Region::begin();
    let (sender, mut lines) = mpsc::channel::<Line>(CAPACITY);
    let writer = spawn(async move {
        let mut kept: Vec<u8> = Vec::with_capacity(BUFFER);
        let (mut count, mut sum, mut bytes) = (0, 0u64, 0);
        let flush = sleep(PAUSE);
        tokio::pin!(flush);
        loop {
            tokio::select! {
                received = lines.recv() => {
                    let Some(line) = received else { break };
                    if kept.len() + line.size > BUFFER {
                        bytes += kept.len() as u64;
                        kept.clear();
                        flush.as_mut().reset(tokio::time::Instant::now() + PAUSE);
                    }
                    kept.extend_from_slice(&line.text[..line.size]);
                    sum = sum.wrapping_add(line.sum);
                    count += 1;
                }
                _ = &mut flush => {
                    bytes += kept.len() as u64;
                    kept.clear();
                    flush.as_mut().reset(tokio::time::Instant::now() + PAUSE);
                }
            }
        }
        (count, sum, bytes + kept.len() as u64)
    });
    let mut set = JoinSet::new();
    for number in 0..SENDERS {
        let sender = sender.clone();
        set.spawn(async move {
            let mut seed = number + 1;
            for i in 0..each {
                seed += i;
                let sum = compute(seed, STEPS);
                let mut line = Line { sum, size: (20 + sum % (TEXT - 20)) as usize, text: [0; 56] };
                line.text[..line.size].fill(b'a' + (sum % 26) as u8);
                if sender.send(line).await.is_err() {
                    fail("the writer has ended".to_string());
                }
            }
        });
    }
    join_all(set).await;
    drop(sender);
    let (count, sum, bytes) = writer.await.unwrap();
    let outcome = region.end(each * SENDERS, String::new());
    let mut expected = 0u64;
    for number in 0..SENDERS {
        let mut seed = number + 1;
        for i in 0..each {
            seed += i;
            expected = expected.wrapping_add(compute(seed, STEPS));
        }
    }
    if count != each * SENDERS || sum != expected || bytes < 20 * count {
        fail(format!("{count} lines of {}", each * SENDERS));
    }
    outcome
}

/// The programs of bench/work; None: there is no such name.
pub async fn work(name: &str, scale: f64, workers: usize) -> Option<Outcome> {
    Some(match name {
        "actors" => actors(scale).await,
        "request" => request(scale).await,
        "fanout0" => fanout(scaled(1_000_000, scale), 0).await,
        "fanout5" => fanout(scaled(100_000, scale), 5).await,
        "fanout50" => fanout(scaled(10_000, scale), 50).await,
        "service_5k" => service(5000, scale).await,
        "service_30k" => service(30_000, scale).await,
        "broadcast_chan" => broadcast_chan(scale).await,
        "broadcast_cond" => broadcast_cond(scale).await,
        "rwlock" => rwlock(scale).await,
        "waves" => waves(scale).await,
        "nest" => nest(scale).await,
        "timeouts" => timeouts(scale).await,
        "cold" => cold(scale, workers),
        "chameneos" => chameneos(scale).await,
        "tree" => tree(scale).await,
        "sort" => sort(scale).await,
        "pipeline" => pipeline(scaled(80_000, scale), 8, 16, [STEPS_PER_US; 4]).await,
        "stages" => pipeline(scaled(200_000, scale), 1, 32, [150, 675, 75, 375]).await,
        "sessions" => sessions(scale).await,
        "limited" => limited(scale).await,
        "bursts" => bursts(scale).await,
        "cache" => cache(scale).await,
        "log" => log(scale).await,
        _ => return None,
    })
}
