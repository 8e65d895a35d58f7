//! Where viewers connect: a TCP port or a UNIX socket.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use tokio::net::TcpListener;

use super::address::unix_path;
use super::socket::Socket;

/// Where to listen for viewers.
#[derive(Debug, Clone)]
pub enum ListenAt {
    Tcp(String),
    Unix(PathBuf),
}

impl ListenAt {
    /// Reads `unix:PATH`, a path that begins with `/` or `./`, or a host and port.
    ///
    /// # Errors
    /// The path is empty, or this system has no UNIX sockets.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        Ok(unix_path(text)?.map_or_else(|| Self::Tcp(text.to_owned()), Self::Unix))
    }
}

impl fmt::Display for ListenAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => f.write_str(address),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A viewer that has connected.
#[derive(Debug)]
pub struct Arrival {
    pub socket: Socket,
    /// Where it comes from: this machine, if over a UNIX socket.
    pub from: IpAddr,
    /// What it is called in messages.
    pub name: String,
}

/// Accepts viewers.
#[derive(Debug)]
pub enum ViewerListener {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(unix::UnixPlace),
}

impl ViewerListener {
    /// Listens.
    ///
    /// # Errors
    /// Somebody else does, the address does not exist, or there is something that is no socket at the path.
    pub async fn bind(at: &ListenAt) -> io::Result<Self> {
        match at {
            ListenAt::Tcp(address) => Ok(Self::Tcp(TcpListener::bind(address).await?)),
            #[cfg(unix)]
            ListenAt::Unix(path) => Ok(Self::Unix(unix::UnixPlace::bind(path).await?)),
            #[cfg(not(unix))]
            ListenAt::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// The address, and the port if there is one.
    ///
    /// # Errors
    /// The system does not say.
    pub fn local(&self) -> io::Result<(String, Option<u16>)> {
        match self {
            Self::Tcp(listener) => {
                let address = listener.local_addr()?;
                Ok((address.to_string(), Some(address.port())))
            }
            #[cfg(unix)]
            Self::Unix(place) => Ok((format!("unix:{}", place.path().display()), None)),
        }
    }

    /// Waits for a viewer.
    ///
    /// # Errors
    /// For example, too many files are open.
    pub async fn accept(&mut self) -> io::Result<Arrival> {
        match self {
            Self::Tcp(listener) => {
                let (tcp, remote) = listener.accept().await?;
                let (socket, name) = (Socket::new(tcp), remote.to_string());
                Ok(Arrival { socket, from: remote.ip(), name })
            }
            #[cfg(unix)]
            Self::Unix(place) => {
                let (stream, number) = place.accept().await?;
                let (from, name) = (Ipv4Addr::LOCALHOST.into(), format!("local viewer {number}"));
                Ok(Arrival { socket: Socket::over(stream), from, name })
            }
        }
    }
}

#[cfg(unix)]
mod unix {
    use std::fs;
    use std::io::{self, ErrorKind};
    use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
    use std::path::{Path, PathBuf};

    use tokio::net::{UnixListener, UnixStream};

    /// A UNIX socket that only its owner may connect to. The socket is removed when this is dropped.
    #[derive(Debug)]
    pub struct UnixPlace {
        listener: UnixListener,
        path: PathBuf,
        /// Tells the socket from one that has taken its place since.
        inode: u64,
        accepted: u64,
    }

    impl UnixPlace {
        /// Listens at a path. A socket at which nobody listens any more is replaced, nothing else is.
        pub async fn bind(path: &Path) -> io::Result<Self> {
            remove_stale(path).await?;
            // The socket gets its name once its mode is right, so that nobody else connects before.
            let beside = match path.parent() {
                Some(parent) if parent != Path::new("") => parent,
                _ => Path::new("."),
            };
            let private = tempfile::Builder::new().prefix(".vnc").tempdir_in(beside)?;
            let unnamed = private.path().join("s");
            let listener = UnixListener::bind(&unnamed)?;
            fs::set_permissions(&unnamed, fs::Permissions::from_mode(0o600))?;
            // Unlike a renamed file, a link replaces nothing.
            fs::hard_link(&unnamed, path)?;
            let inode = fs::symlink_metadata(path)?.ino();
            Ok(Self { listener, path: path.to_owned(), inode, accepted: 0 })
        }

        pub fn path(&self) -> &Path {
            &self.path
        }

        /// Waits for a connection, and numbers it.
        pub async fn accept(&mut self) -> io::Result<(UnixStream, u64)> {
            let (stream, _) = self.listener.accept().await?;
            self.accepted += 1;
            Ok((stream, self.accepted))
        }
    }

    impl Drop for UnixPlace {
        fn drop(&mut self) {
            if fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode) {
                // A socket that stays is replaced the next time.
                let _ = fs::remove_file(&self.path);
            }
        }
    }

    /// Removes a socket at which nobody answers.
    async fn remove_stale(path: &Path) -> io::Result<()> {
        let found = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            found => found?,
        };
        if !found.file_type().is_socket() {
            return Err(io::Error::other("there is a file that is no socket, which is kept"));
        }
        match UnixStream::connect(path).await {
            Ok(_) => Err(ErrorKind::AddrInUse.into()),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
            Err(error) => Err(error),
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[tokio::test]
        async fn a_socket_is_its_owners_alone_and_goes_with_its_listener() {
            let scratch = tempfile::tempdir().unwrap();
            let path = scratch.path().join("vnc");
            let mut place = UnixPlace::bind(&path).await.unwrap();
            let mode = fs::symlink_metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            let (accepted, connected) = tokio::join!(place.accept(), UnixStream::connect(&path));
            assert!(accepted.is_ok() && connected.is_ok());
            // Nothing else is left in the directory.
            assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
            drop(place);
            assert!(!path.exists());
        }

        #[tokio::test]
        async fn only_a_socket_that_nobody_answers_is_replaced() {
            let scratch = tempfile::tempdir().unwrap();
            let path = scratch.path().join("vnc");
            drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
            assert!(path.exists());
            let place = UnixPlace::bind(&path).await.unwrap();
            let error = UnixPlace::bind(&path).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::AddrInUse);
            assert!(UnixStream::connect(&path).await.is_ok());
            // What has taken the place of the socket stays.
            fs::remove_file(&path).unwrap();
            fs::write(&path, "text").unwrap();
            drop(place);
            let error = UnixPlace::bind(&path).await.unwrap_err();
            assert!(error.to_string().contains("no socket"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), "text");
        }
    }
}
