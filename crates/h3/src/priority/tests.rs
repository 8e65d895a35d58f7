use super::*;
use proptest::prelude::*;
use sutura_schedule::Urgency;

fn parsed(value: &str) -> Priority {
    PriorityParameters::parse(value.as_bytes()).unwrap().resolve()
}

fn weight(thousandths: u32) -> Weight {
    Weight::new(thousandths).unwrap()
}

fn class(name: &str) -> Class {
    Class::default().with_name((!name.is_empty()).then(|| name.into()))
}

#[test]
fn classes_are_added_from_the_inside_out() {
    let p = Priority::default().within(class("in view")).within(class("images"));
    assert_eq!(p.to_string(), r#"exp_p=("in view" "images")"#);
    assert_eq!(p.to_string().parse(), Ok(p));
    assert!("w=1".parse::<Priority>().is_err() && "u=8".parse::<Priority>().is_err());
}

#[test]
fn each_parameter_falls_back_alone() {
    let default = Priority::default;
    for (value, expected) in [
        ("", default()),
        ("u=0", Priority { urgency: 0, ..default() }),
        ("i", Priority { incremental: true, ..default() }),
        ("u=5, i=?0", Priority { urgency: 5, ..default() }),
        ("u=8, i", Priority { incremental: true, ..default() }),
        ("u=-1, i", Priority { incremental: true, ..default() }),
        ("u=1.0, i", Priority { incremental: true, ..default() }),
        ("u=\"1\";a=b, i", Priority { incremental: true, ..default() }),
        ("i=1, u=2", Priority { urgency: 2, ..default() }),
        ("u=(1 2), i", Priority { incremental: true, ..default() }),
        ("i=(), u=2", Priority { urgency: 2, ..default() }),
        ("u=999999999999999, exp_b=2", Priority { burst: Some(2), ..default() }),
        ("u=1, u=2", Priority { urgency: 2, ..default() }),
        // The last of two counts, even if it is unusable.
        ("u=1, u=9", default()),
        ("exp_b=-3, u=1", Priority { urgency: 1, ..default() }),
        ("exp_b=3.5, u=1", Priority { urgency: 1, ..default() }),
        ("exp_b=256, u=1", Priority { urgency: 1, ..default() }),
        ("exp_d=60001, u=1", Priority { urgency: 1, ..default() }),
        ("exp_w=0.4", Priority { weight: weight(400), ..default() }),
        ("exp_w=2", Priority { weight: weight(2000), ..default() }),
        ("exp_w=0.001", Priority { weight: Weight::MIN, ..default() }),
        ("exp_w=1000", Priority { weight: Weight::MAX, ..default() }),
        ("exp_w=1000.001, u=1", Priority { urgency: 1, ..default() }),
        ("exp_w=0, u=1", Priority { urgency: 1, ..default() }),
        ("exp_w=0.0, u=1", Priority { urgency: 1, ..default() }),
        ("exp_w=-0.5, u=1", Priority { urgency: 1, ..default() }),
        ("exp_w=999999999999999, u=1", Priority { urgency: 1, ..default() }),
        ("exp_w=-999999999999.999, u=1", Priority { urgency: 1, ..default() }),
        ("exp_w=\"1\", u=1", Priority { urgency: 1, ..default() }),
        ("exp_w, u=1", Priority { urgency: 1, ..default() }),
        ("exp_w=(1), u=1", Priority { urgency: 1, ..default() }),
        ("exp_p, u=1", Priority { urgency: 1, ..default() }),
        ("exp_p=\"web\", u=1", Priority { urgency: 1, ..default() }),
        ("exp_p=(), u=1", Priority { urgency: 1, ..default() }),
        ("exp, other=(\"a\" 1);b, exp_q=3", default()),
    ] {
        assert_eq!(parsed(value), expected, "{value}");
    }
}

#[test]
fn each_class_falls_back_alone() {
    let long = "x".repeat(MAX_CLASS_NAME);
    for (value, expected) in [
        (r#"("a")"#.to_owned(), vec![class("a")]),
        ("(a)".to_owned(), vec![class("a")]),
        (r#"("a" b "c d\"e")"#.to_owned(), vec![class("a"), class("b"), class("c d\"e")]),
        // No name: each is a class of its own.
        (r#"("";u=1)"#.to_owned(), vec![Class::default().with_urgency(Urgency::new(1).unwrap())]),
        (r#"(1 "a" 2.5 ?1 :aGk=: @7 "b")"#.to_owned(), vec![class("a"), class("b")]),
        (format!("({long}x {long})"), vec![class(&long)]),
        (
            r#"("a";u=8;i=1;exp_w=0 "b";u=2)"#.to_owned(),
            vec![class("a"), class("b").with_urgency(Urgency::new(2).unwrap())],
        ),
        (
            r#"("a";i;q=3;exp_b=2;exp_w=7;exp_p="b");u=1"#.to_owned(),
            vec![class("a").with_incremental(true).with_weight(weight(7000))],
        ),
        (
            "(a b c d e f g h i j)".to_owned(),
            "abcdefgh".split("").filter(|s| !s.is_empty()).map(class).collect(),
        ),
        ("(1 2 3)".to_owned(), vec![]),
    ] {
        let priority = parsed(&format!("exp_p={value}, u=6"));
        assert_eq!(priority.urgency, 6, "{value}");
        assert_eq!(*priority.parents, *expected, "{value}");
    }
}

#[test]
fn the_value_of_the_papers_example() {
    let value = r#"u=3, i, exp_b=3, exp_d=80, exp_p=("ivp";u=3;i;exp_w=0.4 "img";u=1)"#;
    let ivp = class("ivp").with_incremental(true).with_weight(weight(400));
    let img = class("img").with_urgency(Urgency::new(1).unwrap());
    let expected = Priority {
        incremental: true,
        burst: Some(3),
        delay: Duration::from_millis(80),
        parents: [ivp, img].into(),
        ..Priority::default()
    };
    assert_eq!(parsed(value), expected);
    let again = r#"i, exp_b=3, exp_d=80, exp_p=("ivp";i;exp_w=0.4 "img";u=1)"#;
    assert_eq!(expected.to_field_value(), again);
}

#[test]
fn what_is_no_dictionary_is_none() {
    for value in [
        &b"u="[..],
        b"U=1",
        b"u=1,",
        b"\xff",
        b"u=1 i",
        b"u=1000000000000000",
        b"exp_p=(\"a\"",
        b"exp_p=(\"\xc3\xa4\")",
        b"exp_w=0.0001",
    ] {
        assert_eq!(PriorityParameters::parse(value), None, "{value:?}");
    }
    assert_eq!(PriorityParameters::parse(&vec![b' '; MAX_PRIORITY_SIZE + 1]), None);
    assert!(PriorityParameters::parse(&vec![b' '; MAX_PRIORITY_SIZE]).is_some());
}

#[test]
fn lines_combine() {
    let fields = Fields::new().with("priority", "u=1").with("priority", "i, exp_b=1");
    let expected =
        Priority { urgency: 1, incremental: true, burst: Some(1), ..Priority::default() };
    assert_eq!(PriorityParameters::from_fields(&fields).resolve(), expected);
}

/// The example of RFC 9218 section 8: the server sets the urgency and leaves `i` alone.
#[test]
fn the_server_overrides_what_it_names() {
    let client = PriorityParameters::parse(b"u=5, i").unwrap();
    let server = PriorityParameters::parse(b"u=1, i=1").unwrap();
    let expected = Priority { urgency: 1, incremental: true, ..Priority::default() };
    assert_eq!(client.overridden_by(&server).resolve(), expected);
}

#[test]
fn the_server_overrides_weight_and_classes() {
    let client = PriorityParameters::parse(b"u=5, exp_w=2, exp_p=(a b), exp_d=4").unwrap();
    for (server, weight_of, classes) in [
        ("", 2000, vec![class("a"), class("b")]),
        ("exp_w=0.5", 500, vec![class("a"), class("b")]),
        ("exp_w=0", 2000, vec![class("a"), class("b")]),
        ("exp_p=(c)", 2000, vec![class("c")]),
        ("exp_p=()", 2000, vec![]),
        ("exp_p=c", 2000, vec![class("a"), class("b")]),
    ] {
        let server = PriorityParameters::parse(server.as_bytes()).unwrap();
        let merged = client.overridden_by(&server).resolve();
        assert_eq!((merged.urgency, merged.delay), (5, Duration::from_millis(4)));
        assert_eq!(merged.weight, weight(weight_of), "{server}");
        assert_eq!(*merged.parents, *classes, "{server}");
    }
}

#[test]
fn default_has_a_value() {
    assert_eq!(Priority::default().to_field_value(), "u=3");
    assert_eq!(PriorityParameters::default().to_string(), "");
    let all = PriorityParameters::from(&Priority::default());
    assert_eq!(all.to_string(), "u=3, i=?0, exp_w=1.0, exp_d=0, exp_p=()");
}

#[test]
fn what_cannot_be_said_is_brought_into_range_or_left_out() {
    let control = class("c").with_urgency(Urgency::CONTROL);
    let long = class(&"x".repeat(MAX_CLASS_NAME + 1));
    let priority = Priority {
        urgency: 200,
        burst: Some(1000),
        delay: Duration::MAX,
        parents: [class("ä"), long, class("a\nb"), control].into(),
        ..Priority::default()
    };
    assert_eq!(priority.to_field_value(), r#"u=7, exp_b=255, exp_d=60000, exp_p=("c";u=0)"#);
    let deep = Priority { parents: vec![class("n"); 3 * MAX_DEPTH].into(), ..Priority::default() };
    assert_eq!(parsed(&deep.to_field_value()).parents.len(), MAX_DEPTH);
}

#[test]
fn the_longest_value_is_taken() {
    let class = Class::default()
        .with_name(Some("\"".repeat(MAX_CLASS_NAME).into()))
        .with_urgency(Urgency::LOWEST)
        .with_incremental(true)
        .with_weight(weight(999_999));
    let priority = Priority {
        urgency: 7,
        incremental: true,
        weight: weight(999_999),
        parents: vec![class; MAX_DEPTH].into(),
        burst: Some(MAX_BURST),
        delay: MAX_DELAY,
    };
    let value = priority.to_field_value();
    assert!(value.len() < MAX_PRIORITY_SIZE / 2, "{}", value.len());
    assert_eq!(parsed(&value), priority);
}

#[test]
fn people_are_told_what_would_be_skipped() {
    let check = |text: &str| text.parse::<PriorityParameters>();
    let value = r#"u=3, i, exp_w=2, exp_b=3, exp_d=80, exp_p=("ivp";u=3;i;exp_w=0.4 img)"#;
    assert_eq!(check(value), Ok(PriorityParameters::parse(value.as_bytes()).unwrap()));
    assert_eq!(check("u=;"), Err(PriorityError::Malformed));
    for (text, name) in [
        ("u=8", "u"),
        ("i=1", "i"),
        ("u=(1)", "u"),
        ("exp_w=0", "exp_w"),
        ("exp_b=256", "exp_b"),
        ("exp_d=-1", "exp_d"),
        ("exp_p=web", "exp_p"),
        ("exp_p=(1)", "exp_p"),
        ("exp_p=(a b c d e f g h i)", "exp_p"),
        ("exp_p=(a;exp_w=0)", "exp_w"),
        ("exp_p=(a;exp_b=1)", "exp_b"),
        ("x=3", "x"),
        ("u=1, exp_a=(1)", "exp_a"),
    ] {
        let Err(PriorityError::Parameter { name: found, .. }) = check(text) else {
            panic!("{text}: {:?}", check(text));
        };
        assert_eq!(found, name, "{text}");
    }
    assert_eq!(check("u=8").unwrap_err().to_string(), "u: expected an integer from 0 to 7");
}

prop_compose! {
    fn any_class()(
        name in "[ -~]{0,64}",
        urgency in 0u8..8,
        incremental: bool,
        thousandths in 1u32..=1_000_000,
    ) -> Class {
        class(&name)
            .with_urgency(Urgency::new(urgency).unwrap())
            .with_incremental(incremental)
            .with_weight(weight(thousandths))
    }
}

proptest! {
    #[test]
    fn round_trip(
        urgency in 0u8..8,
        incremental: bool,
        thousandths in 1u32..=1_000_000,
        parents in prop::collection::vec(any_class(), 0..=MAX_DEPTH),
        burst in prop::option::of(0..=MAX_BURST),
        ms in 0u64..=60_000,
    ) {
        let delay = Duration::from_millis(ms);
        let (weight, parents) = (weight(thousandths), parents.into());
        let priority = Priority { urgency, incremental, weight, parents, burst, delay };
        prop_assert_eq!(&parsed(&priority.to_field_value()), &priority);
        let parameters = PriorityParameters::from(&priority);
        prop_assert_eq!(parameters.to_string().parse(), Ok(parameters));
    }

    #[test]
    fn plausible_values_resolve_within_bounds_and_survive_a_round_trip(
        value in r#"((u|i|exp_[wpbd]|x)(=(-?[0-9]{1,5}(\.[0-9]{1,3})?|\?[01]|\(("[a-z]{0,70}"(;(u|i|exp_w)(=-?[0-9]\.?[0-9]{0,3})?){0,3} ?){0,12}\)|"[a-z]"))?, ){0,5}i"#
    ) {
        crate::fuzz::priority(value.as_bytes());
    }
}
