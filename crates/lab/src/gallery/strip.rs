//! A claim as a strip: the paper's figure, ours with its interval, the ideal, and where the claim holds, on one scale.

use maud::{Markup, html};

use crate::papers::Scale;

/// The width of a strip and its height, and the room at either end, in pixels.
const WIDTH: f64 = 220.0;
const HEIGHT: f64 = 26.0;
const MARGIN: f64 = 10.0;
/// Half the size of a mark.
const MARK: f64 = 4.5;

/// Where numbers are on a strip.
struct Places {
    low: f64,
    high: f64,
}

impl Places {
    /// From the smallest number to the largest.
    fn of(scale: &Scale) -> Self {
        let (low, high) = scale
            .numbers()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), n| (low.min(n), high.max(n)));
        // Equal numbers are in the middle.
        let room = if high > low { 0.0 } else { high.abs().max(1.0) };
        Self { low: low - room, high: high + room }
    }

    fn x(&self, number: f64) -> f64 {
        let share = (number - self.low) / (self.high - self.low);
        MARGIN + share.clamp(0.0, 1.0) * (WIDTH - 2.0 * MARGIN)
    }
}

/// The strip of a claim.
pub(super) fn strip(scale: &Scale) -> Markup {
    let places = Places::of(scale);
    let middle = HEIGHT / 2.0;
    let x = |number: f64| format!("{:.1}", places.x(number));
    let [least, most] = scale.holds;
    let from = least.map_or(0.0, |least| places.x(least));
    let to = most.map_or(WIDTH, |most| places.x(most));
    let [low, high] = scale.within;
    let whisker = low.zip(high).map(|ends| (x(ends.0), x(ends.1)));
    let ours = places.x(scale.ours);
    html! {
        svg.strip width=(WIDTH) height=(HEIGHT) viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" {
            rect.holds x={ (format!("{from:.1}")) } y="3" width={ (format!("{:.1}", (to - from).max(2.0))) }
                height=(HEIGHT - 6.0) {}
            line.axis x1="0" x2=(WIDTH) y1=(middle) y2=(middle) {}
            @if let Some((low, high)) = whisker { line.within x1=(low) x2=(high) y1=(middle) y2=(middle) {} }
            @if let Some(bound) = scale.bound {
                path.bound d=(diamond(places.x(bound), middle)) { title { "ideal" } }
            }
            circle.ours cx={ (format!("{ours:.1}")) } cy=(middle) r=(MARK) { title { "here" } }
            @if let Some(paper) = scale.paper {
                line.paper x1=(x(paper)) x2=(x(paper)) y1="2" y2=(HEIGHT - 2.0) { title { "the paper" } }
            }
        }
    }
}

fn diamond(x: f64, y: f64) -> String {
    format!("M{x:.1} {:.1}l{MARK} {MARK}l-{MARK} {MARK}l-{MARK} -{MARK}z", y - MARK)
}

/// What the marks of a strip are.
pub(super) fn legend() -> Markup {
    html! {
        p.about {
            "In the strips: a dot is what is measured here, with its interval; a bar is the paper's figure, where it gives "
            "a single one; a diamond is the ideal or a bound; and the claim holds where it is shaded."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_places() {
        let scale = Scale {
            ours: 2.0,
            within: [Some(1.0), Some(3.0)],
            paper: Some(5.0),
            bound: Some(1.0),
            holds: [None, Some(4.0)],
        };
        let places = Places::of(&scale);
        assert_eq!([1.0, 3.0, 5.0, 9.0].map(|n| places.x(n)), [10.0, 110.0, 210.0, 210.0]);
        let svg = strip(&scale).into_string();
        for part in ["class=\"paper\" x1=\"210.0\"", "cx=\"60.0\"", "width=\"160.0\"", "M10.0 8.5"]
        {
            assert!(svg.contains(part), "{part} in {svg}");
        }
        let alone =
            Scale { within: [None; 2], paper: None, bound: None, holds: [Some(2.0); 2], ..scale };
        assert_eq!(Places::of(&alone).x(2.0), 110.0);
        assert!(!strip(&alone).into_string().contains("class=\"within\""));
    }
}
