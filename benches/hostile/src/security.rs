//! The prices in SECURITY.md: the last two columns of its table of attacks.

use crate::measure::Measurement;
use crate::target::Stack;
use std::collections::BTreeMap;

/// The price of an attack: nanoseconds and held bytes of the server for each byte that is sent.
pub type Price = [String; 2];

/// The price of each attack on Sutura.
pub fn prices(measurements: &[Measurement]) -> BTreeMap<&str, Price> {
    let ours = measurements.iter().filter(|m| m.stack == Stack::Sutura);
    ours.map(|m| (m.attack, price(m))).collect()
}

/// The price, as all tables print it.
pub fn price(m: &Measurement) -> Price {
    [format!("{:.1}", m.nanoseconds_per_byte()), format!("{:.2}", m.held_per_byte())]
}

/// The cells of a table's row.
fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

/// The attack of a row, and the beginning of the row up to the name of the attack.
fn attack(line: &str) -> Option<(&str, &str)> {
    let [.., name, _, _] = cells(line)?[..] else { return None };
    let name = name.strip_prefix('`')?.strip_suffix('`')?;
    let at = line.rfind(&format!("| `{name}` |"))?;
    Some((name, line.get(..at)?))
}

/// The text with the prices that are known in its table.
pub fn renew(text: &str, prices: &BTreeMap<&str, Price>) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let known = attack(line).and_then(|(name, row)| Some((name, row, prices.get(name)?)));
        match known {
            Some((name, row, [time, memory])) => {
                out += &format!("{row}| `{name}` | {time} | {memory} |");
            }
            None => out += line,
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const SECURITY: &str = include_str!("../../../SECURITY.md");
    const RESULTS: &str = include_str!("../../../docs/results/hostile.md");

    #[test]
    fn only_known_prices_are_renewed() {
        let text = "# A `b` |\n| x | `pings` | 1.0 | |\n| y | `acks` | 2 | 3 |\n";
        let prices = BTreeMap::from([("pings", ["7.5".to_owned(), "0.10".to_owned()])]);
        let renewed = renew(text, &prices);
        assert_eq!(renewed, "# A `b` |\n| x | `pings` | 7.5 | 0.10 |\n| y | `acks` | 2 | 3 |\n");
    }

    #[test]
    fn every_attack_has_its_row() {
        let listed: Vec<&str> = SECURITY.lines().filter_map(attack).map(|(name, _)| name).collect();
        let all: BTreeSet<&str> = crate::attacks::all().iter().map(|attack| attack.name).collect();
        assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), all);
        assert_eq!(listed.len(), all.len(), "some are there twice");
    }

    #[test]
    fn the_prices_are_those_of_the_results() {
        let rows =
            RESULTS.lines().filter_map(cells).filter(|cells| cells.get(1) == Some(&"sutura"));
        let mut prices: BTreeMap<&str, Price> = BTreeMap::new();
        for row in rows {
            // The first table; the second has other columns.
            if let [name, _, _, _, _, time, _, memory, _] = row[..] {
                prices.insert(name, [time.to_owned(), memory.to_owned()]);
            }
        }
        assert_eq!(prices.len(), crate::attacks::all().len());
        assert_eq!(renew(SECURITY, &prices), SECURITY);
    }
}
