//! FlEC's statements about its figures (Michel et al. 2022, sections VI and VII), on a few paths.

use super::flec_path::{Download, Path, mean_wire, median_time};
use crate::Options;
use crate::comparison::Compared;

fn compared(
    path: Path,
    bytes: u64,
    buffer: Option<u64>,
    policies: &[&str],
    seeds: u64,
) -> Compared<Download> {
    let download = [Download { buffer, ..Download::new(path, bytes) }];
    Compared::measure(&Options::default(), &download, policies, [seeds; 2]).unwrap().remove(0)
}

/// The satellite path of section VII-B1 with this share of loss each way.
const fn satellite(loss: f64) -> Path {
    Path { mbit: 8.0, one_way_ms: 200.0, loss_down: loss, loss_up: loss, burst: 1.0 }
}

/// Fig. 3: short files are faster with protection of their end, and no file is slower. Fig. 4: AC-RLNC takes
/// more bytes.
#[test]
fn bulk_shortens_files_for_fewer_bytes_than_ac_rlnc() {
    let paths = [[20.0, 20.0, 3.0, 1.0], [5.0, 60.0, 2.0, 4.0], [25.0, 90.0, 5.0, 0.5]];
    let mut times = Vec::new();
    for path in paths.map(Path::random) {
        let small = compared(path, 100_000, None, &["bulk"], 6);
        times.push(small.ratio(0, median_time));
        let large = compared(path, 1_000_000, None, &["bulk", "ac-rlnc"], 3);
        let bytes = [0, 1].map(|policy| large.ratio(policy, mean_wire));
        assert!(bytes[0] < bytes[1], "{path}: {bytes:?}");
        assert!(large.ratio(0, median_time) < 1.02, "{path}");
    }
    times.sort_by(f64::total_cmp);
    assert!(times[1] < 0.97 && times[2] < 1.02, "{times:?}");
}

/// Figs. 6 to 8: a receiver whose buffer is smaller than the bandwidth-delay product gets a file sooner, for
/// few bytes more; a path without loss pays nothing.
#[test]
fn a_receiver_with_a_small_buffer_has_a_file_sooner() {
    let with_loss = compared(satellite(2.0), 2_000_000, Some(150_000), &["buffer"], 4);
    let (time, bytes) = (with_loss.ratio(0, median_time), with_loss.ratio(0, mean_wire));
    assert!(time < 0.93 && bytes < 1.1, "{time} {bytes}");
    let without = compared(satellite(0.0), 2_000_000, Some(150_000), &["buffer"], 1);
    let (time, bytes) = (without.ratio(0, median_time), without.ratio(0, mean_wire));
    assert!((0.999..1.001).contains(&time) && bytes < 1.005, "{time} {bytes}");
}

/// Figs. 10 and 11: the same holds on other paths, and with losses in bursts.
#[test]
fn a_small_buffer_is_mended_with_losses_in_bursts_too() {
    let paths = [
        Path { burst: 2.0, ..Path::random([10.0, 100.0, 2.0, 1.0]) },
        Path { burst: 3.0, ..Path::random([20.0, 60.0, 3.0, 1.0]) },
        Path::random([10.0, 100.0, 2.0, 1.0]),
    ];
    for path in paths {
        let compared = compared(path, 2_000_000, Some(150_000), &["buffer"], 4);
        let time = compared.ratio(0, median_time);
        assert!(time < 1.0, "{path}: {time}");
    }
}
