//! A line between two processes that can be cut and slowed down.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// How a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weather {
    /// As it should be.
    Fair,
    /// Nothing arrives and nobody is told, as behind a broken switch.
    Silent,
    /// Connections are broken, and new ones too.
    Cut,
    /// Every piece takes so long.
    Slow(Duration),
}

/// A line to an address.
#[derive(Debug)]
pub struct Link {
    /// Where it begins.
    pub address: SocketAddr,
    weather: Arc<watch::Sender<Weather>>,
}

impl Link {
    /// Lays a line.
    pub async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let weather = Arc::new(watch::Sender::new(Weather::Fair));
        let seen = weather.clone();
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(join(near, target, seen.subscribe()));
            }
        });
        Self { address, weather }
    }

    /// Changes it, for the connections that are open as well.
    pub fn set(&self, weather: Weather) {
        self.weather.send_replace(weather);
    }
}

async fn join(near: TcpStream, target: SocketAddr, mut weather: watch::Receiver<Weather>) {
    let now = *weather.borrow_and_update();
    if now == Weather::Cut {
        return;
    }
    let Ok(far) = TcpStream::connect(target).await else { return };
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
    let broken = async {
        let _ = weather.clone().wait_for(|weather| *weather == Weather::Cut).await;
    };
    // Both go when one does, or when the line is cut.
    tokio::select! {
        () = carry(near_in, far_out, weather.clone()) => {}
        () = carry(far_in, near_out, weather.clone()) => {}
        () = broken => {}
    }
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut weather: watch::Receiver<Weather>) {
    let mut piece = vec![0; 16 * 1024];
    while let Ok(length) = from.read(&mut piece).await {
        let now = *weather.borrow_and_update();
        match now {
            Weather::Slow(pause) => tokio::time::sleep(pause).await,
            Weather::Silent => drop(weather.wait_for(|weather| *weather != Weather::Silent).await),
            Weather::Fair | Weather::Cut => {}
        }
        if length == 0 || to.write_all(&piece[..length]).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_carries_is_cut_and_carries_again() {
        let echo = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let link = Link::to(echo.local_addr().unwrap()).await;
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = echo.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.split();
                    let _ = tokio::io::copy(&mut read, &mut write).await;
                });
            }
        });
        let mut one = TcpStream::connect(link.address).await.unwrap();
        let mut answer = [0; 2];
        one.write_all(b"hi").await.unwrap();
        one.read_exact(&mut answer).await.unwrap();
        link.set(Weather::Cut);
        assert!(one.read_exact(&mut answer).await.is_err(), "the open connection is broken");
        link.set(Weather::Fair);
        let mut other = TcpStream::connect(link.address).await.unwrap();
        other.write_all(b"hi").await.unwrap();
        other.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"hi");
    }
}
