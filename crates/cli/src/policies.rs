//! `sutura policies`: lists the built-in policies.

use serde::Serialize;
use sutura::registry::{self, Registry};

use crate::failure::{Exit, Failure};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  sutura policies
  sutura policies --json

A policy is named with its parameters behind a colon, as in tail:burst=3,delay=25ms.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct PoliciesArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A seam and its policies.
#[derive(Debug, Serialize)]
struct Seam {
    seam: &'static str,
    policies: Vec<Policy>,
}

#[derive(Debug, Serialize)]
struct Policy {
    name: &'static str,
    parameters: &'static str,
    summary: &'static str,
}

fn seam<F: ?Sized>(registry: &Registry<F>) -> Seam {
    let policies = registry.entries().iter().map(|entry| Policy {
        name: entry.name,
        parameters: entry.parameters,
        summary: entry.summary,
    });
    Seam { seam: registry.seam, policies: policies.collect() }
}

fn seams() -> Vec<Seam> {
    vec![
        seam(&sutura_research::schedulers()),
        seam(&sutura_research::redundancy()),
        seam(&registry::loss_reactions()),
        seam(&registry::deliveries()),
        seam(&registry::congestion()),
        seam(&sutura_research::resend_orders()),
    ]
}

/// Lists the built-in policies of every seam.
pub fn run(args: &PoliciesArgs) -> Result<Exit, Failure> {
    let seams = seams();
    if args.json {
        output::json(&seams)?;
        return Ok(Exit::Success);
    }
    for (index, Seam { seam, policies }) in seams.iter().enumerate() {
        let space = if index > 0 { "\n" } else { "" };
        output::line(&format!("{space}{seam}"))?;
        for Policy { name, parameters, summary } in policies {
            let separator = if parameters.is_empty() { "" } else { ":" };
            let name = format!("{name}{separator}{parameters}");
            output::line(&format!("  {name:<32} {summary}"))?;
        }
    }
    Ok(Exit::Success)
}
