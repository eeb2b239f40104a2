//! A faulty network between the operator and the API server. The proxy does not interpret the bytes that it forwards,
//! so it also works for TLS connections.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The number of all connections, and the number of connections with each fault.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) connections: usize,
    pub(crate) refused: usize,
    pub(crate) reset: usize,
    pub(crate) stalled: usize,
    pub(crate) slow: usize,
}

/// The fate of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The connection works.
    Pass,
    /// The proxy resets the connection immediately.
    Refuse,
    /// The proxy delays everything that it forwards by this time.
    Slow(Duration),
    /// The proxy resets the connection after this many bytes, in the middle of a request or a response.
    Reset(u64),
    /// After this many bytes, the proxy keeps the connection open but forwards nothing.
    Stall(u64),
}

/// How long the proxy keeps a stalled connection open.
const HELD: Duration = Duration::from_secs(20);

impl Fate {
    fn draw(rng: &mut Rng) -> Self {
        match rng.u8(..12) {
            0 => Self::Refuse,
            1 => Self::Slow(Duration::from_millis(rng.u64(1..300))),
            2..5 => Self::Reset(rng.u64(..60_000)),
            5 => Self::Stall(rng.u64(..60_000)),
            _ => Self::Pass,
        }
    }
}

#[derive(Debug)]
struct Shared {
    target: SocketAddr,
    trouble: AtomicBool,
    rng: Mutex<Rng>,
    counts: Mutex<Counts>,
}

/// The proxy. The proxy runs until the process ends.
pub(crate) struct Proxy {
    /// The address on which the proxy listens.
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    cut: watch::Sender<u64>,
}

impl Proxy {
    /// Starts a proxy to an address. The proxy has no faults at first.
    pub(crate) fn to(target: SocketAddr, seed: u64) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let (address, cut) = (listener.local_addr().unwrap(), watch::Sender::new(0));
        let (rng, counts) = (Mutex::new(Rng::with_seed(seed)), Mutex::default());
        let shared = Arc::new(Shared { target, trouble: AtomicBool::new(false), rng, counts });
        let (of, cuts) = (Arc::clone(&shared), cut.subscribe());
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(listen(listener, of, cuts));
        });
        Self { address, shared, cut }
    }

    /// Enables or disables faults in new connections.
    pub(crate) fn trouble(&self, is: bool) {
        self.shared.trouble.store(is, Ordering::Relaxed);
    }

    /// Resets every open connection.
    pub(crate) fn cut(&self) {
        self.cut.send_modify(|cuts| *cuts += 1);
    }

    /// Returns the counts so far.
    pub(crate) fn counts(&self) -> Counts {
        *self.shared.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn listen(listener: std::net::TcpListener, shared: Arc<Shared>, cuts: watch::Receiver<u64>) {
    let listener = TcpListener::from_std(listener).unwrap();
    loop {
        // Ignore an error: the client may already have closed the connection.
        let Ok((client, _)) = listener.accept().await else { continue };
        let (shared, mut cuts) = (Arc::clone(&shared), cuts.clone());
        cuts.mark_unchanged();
        tokio::spawn(async move { carry(client, &shared, cuts).await });
    }
}

/// Forwards one connection until it ends.
async fn carry(mut client: TcpStream, shared: &Shared, mut cuts: watch::Receiver<u64>) {
    let fate = shared.fate();
    let server = TcpStream::connect(shared.target).await;
    let (Ok(mut server), true) = (server, fate != Fate::Refuse) else {
        // Ignore an error: if the option cannot be set, the connection closes without a reset, and the client also
        // notices that.
        let _reset = client.set_zero_linger();
        return;
    };
    let whole = {
        let ((from_client, to_client), (from_server, to_server)) = (client.split(), server.split());
        let both = async { tokio::try_join!(copy(from_client, to_server, fate), copy(from_server, to_client, fate)) };
        tokio::select! {
            ended = both => ended.is_ok(),
            _ = cuts.changed() => false,
        }
    };
    if !whole {
        let _reset = (client.set_zero_linger(), server.set_zero_linger());
    }
}

/// Forwards the bytes of one direction until the sender closes the connection. After an error, the caller resets the
/// connection.
async fn copy(mut from: ReadHalf<'_>, mut to: WriteHalf<'_>, fate: Fate) -> std::io::Result<()> {
    let (mut piece, mut carried) = (vec![0; 16 << 10], 0);
    let broken = || Err(std::io::ErrorKind::ConnectionReset.into());
    loop {
        let read = from.read(&mut piece).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        let left = match fate {
            Fate::Reset(most) | Fate::Stall(most) => usize::try_from(most.saturating_sub(carried)).unwrap_or(read),
            _ => read,
        };
        if let Fate::Slow(time) = fate {
            tokio::time::sleep(time).await;
        }
        to.write_all(&piece[..read.min(left)]).await?;
        carried += read as u64;
        if left < read {
            if matches!(fate, Fate::Stall(_)) {
                tokio::time::sleep(HELD).await;
            }
            return broken();
        }
    }
}

impl Shared {
    /// Chooses the fate of a connection at random, and counts the connection.
    fn fate(&self) -> Fate {
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        let fate = if self.trouble.load(Ordering::Relaxed) { Fate::draw(&mut rng) } else { Fate::Pass };
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.connections += 1;
        match fate {
            Fate::Pass => {}
            Fate::Refuse => counts.refused += 1,
            Fate::Slow(_) => counts.slow += 1,
            Fate::Reset(_) => counts.reset += 1,
            Fate::Stall(_) => counts.stalled += 1,
        }
        fate
    }
}
