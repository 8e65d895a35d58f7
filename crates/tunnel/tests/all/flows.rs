//! Many flows at once.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Proxy, echo, forwarded, near};

/// As a browser and all that runs beside it may have. Three sockets of each are in this process.
const FLOWS: usize = 2000;

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_flows_work_at_once() {
    permit_open_files();
    let (proxy, target) = (Proxy::start(&["127.0.0.1:*"]), echo().await);
    let near = near(&proxy).await;
    let at = forwarded(&near, target).await;
    let mut programs = Vec::new();
    for n in 0..FLOWS {
        let mut program = TcpStream::connect(at).await.unwrap();
        program.write_all(&(n as u32).to_be_bytes()).await.unwrap();
        programs.push(program);
    }
    for (n, program) in programs.iter_mut().enumerate() {
        assert_eq!(program.read_u32().await.unwrap(), n as u32);
    }
    assert_eq!(proxy.server.flows(), FLOWS);
    drop(programs);
    while proxy.server.flows() > 0 {
        tokio::task::yield_now().await;
    }
}

/// Asks for as many open files as the system permits.
fn permit_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}
