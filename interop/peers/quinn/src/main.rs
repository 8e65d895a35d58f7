//! quinn as an endpoint of the interoperability matrix, with `h3` for HTTP/3.

mod client;
mod config;
mod server;

use std::process::ExitCode;

use sutura_interop_endpoint::{Role, TestCase, Unsupported};

fn main() -> ExitCode {
    sutura_interop_endpoint::main(|environment| {
        if environment.case == TestCase::V2 {
            return Err(Unsupported.into());
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            match environment.role {
                Role::Client => client::run(&environment).await,
                Role::Server => server::run(environment).await,
            }
        })
    })
}
