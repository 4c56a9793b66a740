//! The same operations as bench/io/file.c, by Tokio: file [DIRECTORY]. Reads and writes at an offset are calls on Tokio's
//! blocking pool: its own File has one position, for one task.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::spawn_blocking;

const BLOCK: usize = 4096;
const BLOCKS: usize = 256;
const OPERATIONS: usize = 2000;
const ROUNDS: usize = 15;
const SYNCS: usize = 320;
const COLD_BLOCKS: usize = 16384;
const COLD_READS: usize = 4096;
const DISK_ROUNDS: usize = 5;

extern "C" {
    fn posix_fadvise(fd: i32, offset: i64, length: i64, advice: i32) -> i32;
    fn clock_gettime(clock: i32, time: *mut [i64; 2]) -> i32;
}

fn cpu() -> Duration {
    let mut time = [0i64; 2];
    assert_eq!(unsafe { clock_gettime(2, &mut time) }, 0); // CLOCK_PROCESS_CPUTIME_ID
    Duration::new(time[0] as u64, time[1] as u32)
}

async fn read(file: &Arc<File>, place: usize) {
    let file = file.clone();
    spawn_blocking(move || file.read_exact_at(&mut [0u8; BLOCK], place as u64)).await.unwrap().unwrap();
}

async fn write(file: &Arc<File>, place: usize) {
    let file = file.clone();
    spawn_blocking(move || file.write_all_at(&[0u8; BLOCK], place as u64)).await.unwrap().unwrap();
}

async fn sync(file: &Arc<File>) {
    let file = file.clone();
    spawn_blocking(move || file.sync_data()).await.unwrap().unwrap();
}

fn row(name: &str, took: Duration, operations: usize) {
    println!("{name:<12} tokio_ns={}", took.as_nanos() as usize / operations);
}

async fn disk(name: &str, members: usize, count: usize, cold: bool, file: &Arc<File>) {
    let (mut least, mut least_cpu) = (Duration::MAX, Duration::MAX);
    for _ in 0..DISK_ROUNDS {
        if cold {
            file.sync_data().unwrap();
            assert_eq!(unsafe { posix_fadvise(file.as_raw_fd(), 0, 0, 4) }, 0); // not needed: out of the page cache
        }
        let (before, start) = (cpu(), Instant::now());
        let tasks: Vec<_> = (0..members)
            .map(|member| {
                let file = file.clone();
                tokio::spawn(async move {
                    for i in (member..count).step_by(members) {
                        if cold {
                            read(&file, i * 7919 % COLD_BLOCKS * BLOCK).await;
                        } else {
                            write(&file, member * BLOCK).await;
                            sync(&file).await;
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        least = least.min(start.elapsed());
        least_cpu = least_cpu.min(cpu() - before);
    }
    println!(
        "{:<12} tokio_ns={} tokio_cpu_ns={}",
        format!("{name}_{members}"),
        least.as_nanos() as usize / count,
        least_cpu.as_nanos() as usize / count
    );
}

#[tokio::main]
async fn main() {
    let directory = std::env::args().nth(1).unwrap_or(".".into());
    let path = format!("{directory}/tokio-file-{}", std::process::id());
    let file = Arc::new(File::options().read(true).write(true).create_new(true).open(&path).unwrap());
    let measured = path.clone();
    tokio::spawn(async move {
        file.write_all_at(&vec![0; COLD_BLOCKS * BLOCK], 0).unwrap();
        let mut least = [Duration::MAX; 4];
        for _ in 0..ROUNDS {
            for (operation, least) in least.iter_mut().enumerate() {
                let start = Instant::now();
                for i in 0..OPERATIONS {
                    let place = i % BLOCKS * BLOCK;
                    match operation {
                        0 => read(&file, place).await,
                        1 => write(&file, place).await,
                        2 => drop(tokio::fs::File::open(&measured).await.unwrap()),
                        _ => drop(tokio::fs::metadata(&measured).await.unwrap()),
                    }
                }
                *least = start.elapsed().min(*least);
            }
        }
        for (name, least) in ["read", "write", "open_close", "stat"].into_iter().zip(least) {
            row(name, least, OPERATIONS);
        }
        assert_eq!(unsafe { posix_fadvise(file.as_raw_fd(), 0, 0, 1) }, 0); // random: no reading ahead
        disk("cold", 1, COLD_READS, true, &file).await;
        disk("cold", 32, COLD_READS, true, &file).await;
        disk("sync", 1, SYNCS, false, &file).await;
        disk("sync", 16, SYNCS, false, &file).await;
    })
    .await
    .unwrap();
    std::fs::remove_file(path).unwrap();
}
