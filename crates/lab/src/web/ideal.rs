//! How a page would load if bytes could be divided at will, computed only from the tree that the
//! priorities describe.

use serde::{Deserialize, Serialize};
use sutura_h3::Priority;
use sutura_schedule::{Class, Weight};

use super::Request;

/// A period in which the same resources share the path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Seconds from the first byte of the page to the end of the phase.
    pub end: f64,
    /// The resources that are sent, with their shares, which add up to 1.
    pub shares: Vec<(usize, f64)>,
    /// The resources among them that are complete at the end.
    pub completed: Vec<usize>,
}

/// Loads `page` at `rate` bytes per second. All resources are requested at once and in order, but
/// `head_start` bytes of the first one are sent before the server knows of the others.
///
/// Among the children of a class the children of the most urgent level share by their weights (hierarchical
/// max-min fairness, Holzinger et al. 2025, III-A); a child that is not incremental goes alone, before
/// incremental ones, in the order of the requests (III-B4).
#[must_use]
pub fn ideal(page: &[Request], head_start: u64, rate: f64) -> Vec<Phase> {
    let tree = Node::root(page);
    // Bytes to come.
    let mut left: Vec<f64> = page.iter().map(|request| request.bytes as f64).collect();
    let mut phases = Vec::new();
    let mut time = 0.0;
    let mut alone = head_start as f64;
    loop {
        let mut shares = Vec::new();
        if alone > 0.0 && !page.is_empty() {
            shares.push((0, 1.0));
        } else {
            tree.divide(1.0, &left, &mut shares);
        }
        let needed = shares.iter().map(|&(resource, share)| left[resource] / share);
        let Some(bytes) = needed.min_by(f64::total_cmp) else { return phases };
        let bytes = if alone > 0.0 { bytes.min(alone) } else { bytes };
        alone = 0.0;
        time += bytes / rate;
        let mut completed = Vec::new();
        for &(resource, share) in &shares {
            left[resource] -= bytes * share;
            // A thousandth of a byte is an error of rounding.
            if left[resource] < 1e-3 {
                left[resource] = 0.0;
                completed.push(resource);
            }
        }
        phases.push(Phase { end: time, shares, completed });
    }
}

/// A class of the tree, or a resource.
#[derive(Debug)]
struct Node {
    urgency: u8,
    incremental: bool,
    weight: f64,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// A class: its name, and its children.
    Class(Option<String>, Vec<Node>),
    /// A resource: its place in the page.
    Resource(usize),
}

fn decimal(weight: Weight) -> f64 {
    f64::from(weight.thousandths()) / 1000.0
}

impl Node {
    fn root(page: &[Request]) -> Self {
        let mut children = Vec::new();
        for (resource, request) in page.iter().enumerate() {
            let priority = request.priority.clone().unwrap_or_default();
            insert(&mut children, &priority.parents, &priority, resource);
        }
        let content = Content::Class(None, children);
        Self { urgency: 0, incremental: true, weight: 1.0, content }
    }

    fn is_active(&self, left: &[f64]) -> bool {
        match &self.content {
            Content::Class(_, children) => children.iter().any(|child| child.is_active(left)),
            Content::Resource(resource) => left[*resource] > 0.0,
        }
    }

    /// Divides a share of the path among the resources below that have bytes left.
    fn divide(&self, share: f64, left: &[f64], shares: &mut Vec<(usize, f64)>) {
        let children = match &self.content {
            Content::Class(_, children) => children,
            Content::Resource(resource) => return shares.push((*resource, share)),
        };
        let active = || children.iter().filter(|child| child.is_active(left));
        let urgency = active().map(|child| child.urgency).min();
        let level = || active().filter(|child| Some(child.urgency) == urgency);
        if let Some(alone) = level().find(|child| !child.incremental) {
            return alone.divide(share, left, shares);
        }
        let sum: f64 = level().map(|child| child.weight).sum();
        for child in level() {
            child.divide(share * child.weight / sum, left, shares);
        }
    }
}

/// Adds a resource below `classes`, the innermost first, which are from now on as this priority says.
fn insert(children: &mut Vec<Node>, classes: &[Class], priority: &Priority, resource: usize) {
    let Some((class, inner)) = classes.split_last() else {
        let Priority { urgency, incremental, weight, .. } = *priority;
        let content = Content::Resource(resource);
        return children.push(Node { urgency, incremental, weight: decimal(weight), content });
    };
    let is_named = |child: &Node| match &child.content {
        Content::Class(name, _) => name.is_some() && name.as_deref() == class.name.as_deref(),
        Content::Resource(_) => false,
    };
    let at = children.iter().position(is_named).unwrap_or_else(|| {
        let name = class.name.as_deref().map(str::to_owned);
        let content = Content::Class(name, Vec::new());
        children.push(Node { urgency: 0, incremental: false, weight: 1.0, content });
        children.len() - 1
    });
    let node = &mut children[at];
    node.urgency = class.urgency.value().unwrap_or_default();
    node.incremental = class.incremental;
    node.weight = decimal(class.weight);
    if let Content::Class(_, children) = &mut node.content {
        insert(children, inner, priority, resource);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sutura_h3::PriorityParameters;

    fn page(resources: &[(u64, &str)]) -> Vec<Request> {
        let request = |&(bytes, priority): &(u64, &str)| Request {
            priority: Some(priority.parse::<PriorityParameters>().unwrap().resolve()),
            ..Request::described(0, bytes)
        };
        resources.iter().map(request).collect()
    }

    #[test]
    fn urgency_goes_first_and_then_the_order_of_requests() {
        let page = page(&[(100, "u=5"), (200, "u=5"), (300, "u=1")]);
        let phases = ideal(&page, 0, 100.0);
        let order: Vec<_> = phases.iter().map(|p| (p.end, p.completed[0])).collect();
        assert_eq!(order, [(3.0, 2), (4.0, 0), (6.0, 1)]);
    }

    #[test]
    fn weights_divide_and_what_is_left_over_goes_to_the_rest() {
        let page = page(&[(100, "i, exp_w=1.0"), (100, "i, exp_w=3.0")]);
        let phases = ideal(&page, 0, 100.0);
        assert_eq!(phases[0].shares, [(0, 0.25), (1, 0.75)]);
        assert_eq!(phases[0].completed, [1]);
        assert!((phases[0].end - 4.0 / 3.0).abs() < 1e-9);
        assert_eq!(phases[1].shares, [(0, 1.0)]);
        assert!((phases[1].end - 2.0).abs() < 1e-9);
    }

    #[test]
    fn classes_keep_their_share_as_long_as_they_have_anything() {
        let class = r#"exp_p=("web";u=0;i;exp_w=4.0)"#;
        let page = page(&[
            (100, "u=0, i, exp_w=1.0"),
            (200, &format!("u=0, {class}")),
            (200, &format!("u=1, {class}")),
        ]);
        let phases = ideal(&page, 0, 100.0);
        assert_eq!(phases[0].shares, [(0, 0.2), (1, 0.8)]);
        assert_eq!(phases[1].shares, [(0, 0.2), (2, 0.8)]);
        assert_eq!((phases[0].end, phases[1].end), (2.5, 5.0));
        assert_eq!(phases.len(), 2, "{phases:?}");
    }

    #[test]
    fn one_that_is_not_incremental_goes_before_those_that_are() {
        let phases = ideal(&page(&[(10, "i"), (10, "u=3"), (10, "i")]), 0, 10.0);
        assert_eq!(phases[0].shares, [(1, 1.0)]);
        assert_eq!(phases[1].shares, [(0, 0.5), (2, 0.5)]);
    }

    #[test]
    fn a_head_start_is_the_first_resources_alone() {
        let phases = ideal(&page(&[(100, "i"), (50, "i")]), 50, 10.0);
        let ends: Vec<_> = phases.iter().map(|p| (p.end, p.completed.clone())).collect();
        assert_eq!(ends, [(5.0, vec![]), (15.0, vec![0, 1])]);
        let all = ideal(&page(&[(100, "u=7"), (50, "u=0")]), 500, 10.0);
        assert_eq!(all[0].completed, [0]);
    }

    #[test]
    fn nothing_takes_no_time() {
        assert!(ideal(&[], 5, 1.0).is_empty());
        assert!(ideal(&page(&[(0, "u=1")]), 0, 1.0).is_empty());
    }
}
