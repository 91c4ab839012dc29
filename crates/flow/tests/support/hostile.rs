//! Documents made to hurt.

pub(crate) const CAP: usize = 262_144;

pub(crate) fn in_graph(text: &str) -> String {
    format!("flow:\n  graph: '{text}'\n")
}

fn filled(start: &str, piece: &str, end: &str) -> String {
    let room = CAP - start.len() - end.len();
    format!("{start}{}{end}", piece.repeat(room / piece.len()))
}

fn alias_bomb() -> String {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let inner = vec![format!("*a{}", level - 1); 9].join(", ");
        text += &format!("a{level}: &a{level} [{inner}]\n");
    }
    text
}

fn text_bomb() -> String {
    format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), vec!["*a"; 9000].join(", "))
}

fn merge_bomb() -> String {
    let mut text = "flow: {graph: a}\ntasks:\n  t0: &t0 {a: 1, b: 2}\n".to_owned();
    for level in 1..40 {
        text += &format!("  t{level}: &t{level} {{<<: [*t{0}, *t{0}, *t{0}]}}\n", level - 1);
    }
    text
}

fn nested_blocks() -> String {
    (0..600).map(|depth| format!("{}k:\n", " ".repeat(depth))).collect()
}

fn doubling_names() -> String {
    let mut graph = "x = a >> b".to_owned();
    for _ in 0..60 {
        graph += "; x = x >> x";
    }
    in_graph(&graph)
}

fn nesting_names() -> String {
    in_graph(&format!("x = a{}", "; x = (x >> b) & c".repeat(8000)))
}

fn listing_names() -> String {
    in_graph(&format!("x = a{}", "; x = [x, x]".repeat(60)))
}

fn all_to_all() -> String {
    let side = |prefix: char| (0..10_000).map(|n| format!("{prefix}{n}")).collect::<Vec<_>>().join(" & ");
    in_graph(&format!("({}) >> ({})", side('a'), side('b')))
}

/// Names, so that a failure says which one it was.
pub(crate) fn documents() -> Vec<(&'static str, String)> {
    vec![
        ("alias bomb", alias_bomb()),
        ("text bomb", text_bomb()),
        ("merge bomb", merge_bomb()),
        ("alias of itself", "a: &a [*a]".to_owned()),
        ("alias of itself in a mapping", "flow: &f {graph: a, defaults: *f}".to_owned()),
        ("deep brackets", "[".repeat(10_000)),
        ("deep braces", "{a: ".repeat(10_000)),
        ("deep dashes", "- ".repeat(10_000)),
        ("deep questions", "? ".repeat(10_000)),
        ("deep blocks", nested_blocks()),
        ("brackets to the cap", filled("", "[", "")),
        ("a long list", filled("flow: {graph: a, defaults: {k: [", "a,", "]}}")),
        ("a long list of pairs", filled("flow: {graph: a, defaults: {k: [", "a: 1,", "]}}")),
        ("a long list of dashes", filled("", "- a\n", "")),
        ("a long mapping of empty keys", filled("", "? \n", "")),
        ("a huge key", filled("", "k", ": 1")),
        ("a huge quoted key", filled("\"", "k", "\": 1")),
        ("quotes without end", filled("a: ", "\"", "")),
        ("colons", filled("", ": ", "")),
        ("anchors", filled("", "&a ", "")),
        ("tags", filled("", "! ", "")),
        ("stars", filled("[", "*a,", "]")),
        ("comments", filled("a: b\n", "#\n", "c")),
        ("spaces", filled("", " ", "x: y: z")),
        ("documents", filled("", "---\n", "")),
        ("percent", filled("", "%", "")),
        ("over the cap", in_graph(&"(".repeat(1_000_000))),
        ("parentheses", in_graph(&"(".repeat(200_000))),
        ("closed parentheses", in_graph(&format!("{}a{}", "(".repeat(100_000), ")".repeat(100_000)))),
        ("shifts", in_graph(&">>".repeat(100_000))),
        ("ampersands", in_graph(&"a&".repeat(100_000))),
        ("subscripts", in_graph(&format!("flow >> a{}", "[1]".repeat(60_000)))),
        ("percents", in_graph(&format!("flow >> a{}", "%1".repeat(90_000)))),
        ("calls", in_graph(&format!("a{}", "()".repeat(90_000)))),
        ("names that double", doubling_names()),
        ("names that nest", nesting_names()),
        ("lists that double", listing_names()),
        ("all to all", all_to_all()),
        ("a huge number", in_graph(&format!("flow >> a[{}]", "9".repeat(200_000)))),
        ("a huge integer", format!("flow: {{graph: a, defaults: {{k: {}}}}}", "9".repeat(200_000))),
        ("NUL", "flow: {graph: 'a\0'}".to_owned()),
        ("NUL escaped", "flow: {graph: \"a\\0\"}".to_owned()),
    ]
}
