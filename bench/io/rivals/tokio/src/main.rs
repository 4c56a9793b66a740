//! An echo server with a task for each connection: echo [WORKERS].

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn echo(mut connection: TcpStream) {
    let mut bytes = [0u8; 2048];
    let _ = connection.set_nodelay(true);
    while let Ok(n) = connection.read(&mut bytes).await {
        if n == 0 || connection.write_all(&bytes[..n]).await.is_err() {
            return;
        }
    }
}

fn main() {
    let workers = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0usize);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if workers > 0 {
        builder.worker_threads(workers);
    }
    let runtime = builder.enable_io().build().unwrap();
    let serve = async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("port {}", listener.local_addr().unwrap().port());
        loop {
            let (connection, _) = listener.accept().await.unwrap();
            tokio::spawn(echo(connection));
        }
    };
    runtime.block_on(async { tokio::spawn(serve).await.unwrap() })
}
