//! The ends of masquerade-proxy as it is: `masquerade serve ADDRESS`, `masquerade http PROXY LISTEN` and
//! `masquerade socks5 PROXY LISTEN`. The proxy reads its certificate and key from `example_cert/cert.crt` and
//! `example_cert/cert.key` in the working directory; the clients trust any.

use std::env;
use std::error::Error;

use masquerade_proxy::client::{Http1Client, Socks5Client};
use masquerade_proxy::server::Server;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    env_logger::init();
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", address] => {
            let mut server = Server::new();
            server.bind(address).await?;
            server.run().await
        }
        ["http", proxy, listen] => {
            let mut client = Http1Client::new();
            client.bind(listen).await?;
            client.run(&proxy.to_owned()).await
        }
        ["socks5", proxy, listen] => {
            let mut client = Socks5Client::new();
            client.bind(listen).await?;
            client.run(&proxy.to_owned()).await
        }
        _ => Err("expected serve ADDRESS, http PROXY LISTEN or socks5 PROXY LISTEN".into()),
    }
}
