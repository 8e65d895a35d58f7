//! The redundancy policy of `own-policies` beside built-in ones in an experiment.
//!
//! ```sh
//! cargo run --release                      # over three usual paths
//! cargo run --release flec-bulk 10         # a tenth of another experiment
//! ```

use own_policies::redundancy::EveryFew;
use std::error::Error;
use sutura_lab::Options;
use sutura_lab::own::OwnPolicies;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_else(|| "own-paths".to_owned());
    let options = Options {
        policies: ["auto", "every-few"].map(str::to_owned).to_vec(),
        own: OwnPolicies::default().with_redundancy(EveryFew::default()),
        reduce: args.next().map_or(Ok(1), |reduce| reduce.parse())?,
        ..Options::default()
    };
    println!("{}", sutura_lab::run(&name, &options)?.to_markdown());
    Ok(())
}
