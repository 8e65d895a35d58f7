//! How a page would load if bytes could be divided at will: what priorities mean, computed from
//! the tree that they describe and nothing else.

use sutura_h3::Priority;
use sutura_schedule::{Class, Weight};

use super::Request;

/// A time in which the same resources share the path.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Seconds from the first byte of the page to the end of the phase.
    pub end: f64,
    /// The resources that are sent, with their shares, which sum to 1.
    pub shares: Vec<(usize, f64)>,
    /// Those of them that are complete at the end.
    pub completed: Vec<usize>,
}

/// Loads `page`, all of it asked for at once and in order, at `rate` bytes per second. Of the first
/// resource, `head_start` bytes are sent before there are others.
///
/// Among the children of a class those of the most urgent level share by their weights (hierarchical
/// max-min fairness, Holzinger et al. 2025, III-A); one that is not incremental goes alone, before
/// those that are, in the order of the requests (III-B4).
#[must_use]
pub fn ideal(page: &[Request], head_start: u64, rate: f64) -> Vec<Phase> {
    let mut tree = Tree::new(page);
    let mut phases = Vec::new();
    let mut time = 0.0;
    let mut alone = head_start as f64;
    loop {
        let shares = if alone > 0.0 && !page.is_empty() { vec![(0, 1.0)] } else { tree.shares() };
        let left = |&(leaf, share): &(usize, f64)| tree.left[leaf] / share;
        let Some(bytes) = shares.iter().map(left).min_by(f64::total_cmp) else { return phases };
        let bytes = if alone > 0.0 { bytes.min(alone) } else { bytes };
        alone = 0.0;
        time += bytes / rate;
        let mut completed = Vec::new();
        for &(leaf, share) in &shares {
            tree.left[leaf] -= bytes * share;
            // A thousandth of a byte is an error of rounding.
            if tree.left[leaf] < 1e-3 {
                tree.left[leaf] = 0.0;
                completed.push(leaf);
            }
        }
        phases.push(Phase { end: time, shares, completed });
    }
}

#[derive(Debug)]
enum Content {
    Class { name: Option<String>, children: Vec<usize> },
    Leaf(usize),
}

#[derive(Debug)]
struct Node {
    urgency: u8,
    incremental: bool,
    weight: f64,
    content: Content,
}

#[derive(Debug)]
struct Tree {
    nodes: Vec<Node>,
    /// Bytes to come, by leaf.
    left: Vec<f64>,
}

fn decimal(weight: Weight) -> f64 {
    f64::from(weight.thousandths()) / 1000.0
}

impl Tree {
    const ROOT: usize = 0;

    fn new(page: &[Request]) -> Self {
        let content = Content::Class { name: None, children: Vec::new() };
        let root = Node { urgency: 0, incremental: true, weight: 1.0, content };
        let mut tree = Self { nodes: vec![root], left: Vec::new() };
        for (leaf, request) in page.iter().enumerate() {
            tree.left.push(request.bytes as f64);
            tree.insert(leaf, request.priority.as_ref());
        }
        tree
    }

    fn insert(&mut self, leaf: usize, priority: Option<&Priority>) {
        let priority = priority.cloned().unwrap_or_default();
        let mut parent = Self::ROOT;
        for class in priority.parents.iter().rev() {
            parent = self.class(parent, class);
        }
        let Priority { urgency, incremental, weight, .. } = priority;
        let content = Content::Leaf(leaf);
        self.add(parent, Node { urgency, incremental, weight: decimal(weight), content });
    }

    fn add(&mut self, parent: usize, node: Node) -> usize {
        let index = self.nodes.len();
        self.nodes.push(node);
        if let Content::Class { children, .. } = &mut self.nodes[parent].content {
            children.push(index);
        }
        index
    }

    /// The class under `parent`, which is from now on as the latest request says.
    fn class(&mut self, parent: usize, class: &Class) -> usize {
        let wanted = class.name.as_deref();
        let known = self.children(parent).find(|child| match &self.nodes[*child].content {
            Content::Class { name, .. } => name.is_some() && name.as_deref() == wanted,
            Content::Leaf(_) => false,
        });
        let index = known.unwrap_or_else(|| {
            let content = Content::Class { name: wanted.map(str::to_owned), children: Vec::new() };
            self.add(parent, Node { urgency: 0, incremental: false, weight: 1.0, content })
        });
        let node = &mut self.nodes[index];
        node.urgency = class.urgency.value().unwrap_or_default();
        node.incremental = class.incremental;
        node.weight = decimal(class.weight);
        index
    }

    fn children(&self, node: usize) -> impl Iterator<Item = usize> {
        let children: &[usize] = match &self.nodes[node].content {
            Content::Class { children, .. } => children,
            Content::Leaf(_) => &[],
        };
        children.iter().copied()
    }

    fn is_active(&self, node: usize) -> bool {
        match &self.nodes[node].content {
            Content::Class { children, .. } => children.iter().any(|child| self.is_active(*child)),
            Content::Leaf(leaf) => self.left[*leaf] > 0.0,
        }
    }

    /// The share of each leaf that is sent.
    fn shares(&self) -> Vec<(usize, f64)> {
        let mut shares = Vec::new();
        self.divide(Self::ROOT, 1.0, &mut shares);
        shares
    }

    fn divide(&self, node: usize, share: f64, shares: &mut Vec<(usize, f64)>) {
        if let Content::Leaf(leaf) = self.nodes[node].content {
            if self.left[leaf] > 0.0 {
                shares.push((leaf, share));
            }
            return;
        }
        let active: Vec<usize> = self.children(node).filter(|c| self.is_active(*c)).collect();
        let level = active.iter().map(|child| self.nodes[*child].urgency).min();
        let level: Vec<usize> =
            active.into_iter().filter(|child| Some(self.nodes[*child].urgency) == level).collect();
        if let Some(alone) = level.iter().find(|child| !self.nodes[**child].incremental) {
            return self.divide(*alone, share, shares);
        }
        let sum: f64 = level.iter().map(|child| self.nodes[*child].weight).sum();
        for child in level {
            self.divide(child, share * self.nodes[child].weight / sum, shares);
        }
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
