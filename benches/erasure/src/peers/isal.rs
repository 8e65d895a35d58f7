//! Intel's ISA-L, if the build script found it. Its field is the same as ours, so its results are compared.
//!
//! Debian's 2.30 multiplies with shuffles, of AVX-512 at best. Releases from 2.31 on use GFNI, and the
//! targets apply only to those releases.

#[cfg(isal)]
mod bindings;
#[cfg(isal)]
mod entries;
/// Without ISA-L, no entry is added.
#[cfg(not(isal))]
mod entries {
    use crate::{Error, measure::Race};

    pub fn none<J>(_: &mut Race<'_>, _: &J) -> Result<(), Error> {
        Ok(())
    }

    pub use self::{
        none as decode, none as narrow, none as product, none as rs_decode, none as rs_encode,
        none as single, none as xor,
    };
}
#[cfg(isal)]
mod parities;

pub use entries::{decode, narrow, product, rs_decode, rs_encode, single, xor};

/// The version that is linked.
pub const VERSION: Option<&str> = option_env!("ISAL_VERSION");

/// Whether the linked ISA-L has kernels with GFNI.
pub fn has_gfni() -> bool {
    let mut parts = VERSION.unwrap_or_default().split('.').map_while(|part| part.parse().ok());
    (parts.next(), parts.next()) >= (Some(2), Some(31))
}

/// A line about ISA-L for the report.
pub fn describe() -> String {
    match VERSION {
        None => "ISA-L: not found when this was built (apt-get install libisal-dev and touch \
                 benches/erasure/build.rs, or name its directory in ISAL_DIR)"
            .into(),
        Some(version) if has_gfni() => format!("ISA-L: {version}"),
        Some(version) => format!(
            "ISA-L: {version}, without the GFNI kernels of 2.31 and later that the targets are \
             about; ratios to it are information, and the share of the limit decides"
        ),
    }
}
