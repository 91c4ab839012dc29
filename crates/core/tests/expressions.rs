//! The expression language: the golden vectors of the original, its corners, and hostile input.
#![expect(clippy::expect_used, reason = "helpers of tests may fail loudly")]

use std::collections::HashMap;

use num_bigint::BigInt;
use proptest::prelude::*;
use pyoco_core::expr::{Cause, Expression, Scope, SyntaxKind, Value};
use serde_json::{Value as Json, json};

struct Data {
    ctx: Json,
    env: HashMap<String, String>,
}

impl Scope for Data {
    fn ctx(&self, root: &str) -> Option<&Json> {
        self.ctx.get(root)
    }

    fn env(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str)
    }
}

fn data(ctx: Json) -> Data {
    Data { ctx, env: HashMap::from([("A".to_owned(), "x".to_owned()), ("A.B".to_owned(), "y".to_owned())]) }
}

fn params() -> Data {
    data(json!({ "params": {
        "n": 3, "s": "abc", "items": [1, 2, 3], "d": { "k": 1, "": 2, "p": { "q": 9 } }, "nil": null,
        "pairs": [[1, "a"], [1, "b"]], "text": "it's\u{e9}\u{301}\u{200b}\n", "big": u64::MAX, "pi": 3.5,
    } }))
}

fn eval_in(text: &str, scope: &Data) -> Result<Value, String> {
    let expression = Expression::parse(text).map_err(|error| format!("syntax: {error}"))?;
    expression.eval(scope).map_err(|error| {
        let prefix = format!("Failed to evaluate expression '{}': ", expression.text());
        error.to_string().strip_prefix(&prefix).expect("every evaluation error starts alike").to_owned()
    })
}

/// The value's kind and Python's `repr` of it, or the error without its prefix.
fn shown(text: &str) -> String {
    let scope = params();
    match eval_in(text, &scope) {
        Ok(value) => {
            let repr = eval_in(&format!("'%r' % ({text}\n)"), &scope).expect("every value has a repr");
            format!("{} {}", value.type_name(), repr.as_str().expect("a repr is a string"))
        }
        Err(error) => error,
    }
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(shown(text), *expected, "{text}");
    }
}

// Golden vectors.

/// Where the contract (flow-semantics, section 8, decision 9) chose otherwise than the original.
const DEVIATIONS: [(&str, &str); 3] = [
    // `$` inside a string literal stays text.
    ("'$ctx.params.s'", "str '$ctx.params.s'"),
    ("'costs $5'", "str 'costs $5'"),
    // No attribute access beyond mappings and loop frames.
    ("$ctx.params.s.__class__", "$ctx.params.s.__class__ not found."),
];

#[test]
fn golden_vectors_evaluate_as_in_the_original() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testing/vectors/open/expr.json");
    let text = std::fs::read_to_string(path).unwrap();
    let vectors: Vec<Json> = serde_json::from_str(&text).unwrap();
    let mut deviations = 0;
    for vector in &vectors {
        let text = vector["expr"].as_str().unwrap();
        if let Some((_, expected)) = DEVIATIONS.iter().find(|(deviating, _)| *deviating == text) {
            assert_eq!(shown(text), *expected, "{text}");
            deviations += 1;
        } else if let Err(difference) = compare_with_vector(text, vector) {
            panic!("{text}: {difference}");
        }
    }
    assert_eq!(deviations, DEVIATIONS.len());
}

fn compare_with_vector(text: &str, vector: &Json) -> Result<(), String> {
    let env: HashMap<String, String> =
        serde_json::from_value(vector["data"]["env"].clone()).expect("an environment");
    let scope = Data { ctx: vector["data"]["ctx"].clone(), env };
    let parsed = Expression::parse(text);
    let result = match &parsed {
        Ok(expression) => expression.eval(&scope).map_err(|error| ("evaluation", error.to_string())),
        Err(error) => Err(("syntax", error.to_string())),
    };
    let is_same = match (&result, vector.get("error")) {
        (Ok(value), None) => {
            let is_equal = match vector.get("value_repr") {
                Some(repr) => {
                    value.as_int().map(|value| Json::from(value.to_string())).as_ref() == Some(repr)
                }
                None => value.to_json().as_ref() == Some(&vector["value"]),
            };
            is_equal && vector["type"] == value.type_name() && vector["truthy"] == value.truthy()
        }
        (Err((kind, message)), Some(error)) => {
            error["kind"] == *kind && (error["strict"] == false || error["message"] == *message)
        }
        (Ok(_), Some(_)) | (Err(_), None) => false,
    };
    if is_same { Ok(()) } else { Err(format!("got {result:?}, wanted {vector}")) }
}

// Text and syntax.

#[test]
fn text_is_stripped_as_python_strips() {
    let expression = Expression::parse("\u{2003}\x1c 1 + 2\u{a0}\n").unwrap();
    assert_eq!(expression.text(), "1 + 2");
    assert_eq!(expression, Expression::parse("1 + 2").unwrap());
    assert_ne!(expression, Expression::parse("1 +  2").unwrap());
}

#[test]
fn an_expression_is_stored_as_its_text_and_checked_when_read() {
    let expression = Expression::parse(" $ctx.params.n > 2 ").unwrap();
    let stored = serde_json::to_string(&expression).unwrap();
    assert_eq!(stored, r#""$ctx.params.n > 2""#);
    assert_eq!(serde_json::from_str::<Expression>(&stored).unwrap(), expression);
    let error = serde_json::from_str::<Expression>(r#""f(1)""#).unwrap_err().to_string();
    assert!(error.contains("Only $ctx/$env references are allowed."), "{error}");
}

#[test]
fn syntax_errors_say_where() {
    let cases = [
        ("  1 + x", SyntaxKind::Name("x".to_owned()), 4),
        ("1 + f(2)", SyntaxKind::Call, 4),
        ("7 // 2", SyntaxKind::Unsupported("FloorDiv"), 2),
        ("1 + $x", SyntaxKind::Reference, 4),
        ("'é' + $ctx", SyntaxKind::Reference, 7),
        ("'a_env'", SyntaxKind::Underscore, 2),
    ];
    for (text, kind, offset) in cases {
        let error = Expression::parse(text).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (&kind, offset), "{text}");
    }
    assert_eq!(Expression::parse("(1 + ").unwrap_err().offset(), 0);
    assert_eq!(Expression::parse("1 + ").unwrap_err().offset(), 3);
}

#[test]
fn refused_python_is_named_as_the_original_names_it() {
    let unsupported = [
        ("x.y", "Attribute"),
        ("x[1:2, ::3]", "Subscript"),
        ("[*a, 1]", "List"),
        ("()", "Tuple"),
        ("1,", "Tuple"),
        ("{}", "Dict"),
        ("{**a, 'b': 1}", "Dict"),
        ("{1, 2}", "Set"),
        ("{x: 1 for x in y}", "DictComp"),
        ("{x for x in y}", "SetComp"),
        ("[x async for x, in y if z]", "ListComp"),
        ("(x for x in y)", "GeneratorExp"),
        ("1 if f(1) else lambda: 2", "IfExp"),
        ("lambda a, /, b=1, *c, **d: a", "Lambda"),
        ("(x := f(1))", "NamedExpr"),
        ("(yield)", "Yield"),
        ("(yield from x)", "YieldFrom"),
        ("await x", "Await"),
        ("1 | 2", "BitOr"),
        ("1 ^ 2", "BitXor"),
        ("1 >> 2", "RShift"),
        ("1 @ 2", "MatMult"),
        ("~1", "Invert"),
        ("1 is not 2", "IsNot"),
        ("'a' f'{x}'", "JoinedStr"),
        ("2 + 1j", "Complex"),
        ("b'x'", "Bytes"),
        ("...", "Ellipsis"),
    ];
    for (text, name) in unsupported {
        assert_eq!(shown(text), format!("syntax: Unsupported syntax: {name}"), "{text}");
    }
}

#[test]
fn of_several_refusals_the_outermost_then_the_leftmost_is_named() {
    check(&[
        ("x // y", "syntax: Unknown identifier 'x' in expression."),
        ("1 // y", "syntax: Unsupported syntax: FloorDiv"),
        ("x + 1 // 2", "syntax: Unknown identifier 'x' in expression."),
        ("x + 1 + [2]", "syntax: Unsupported syntax: List"),
        ("~1 < [2]", "syntax: Unsupported syntax: List"),
        ("1 < x is 2", "syntax: Unsupported syntax: Is"),
        ("x.y(1)[2]", "syntax: Unsupported syntax: Subscript"),
        ("x[2].y(1)", "syntax: Only $ctx/$env references are allowed."),
        ("not$ctx.params.n", "syntax: Only $ctx/$env references are allowed."),
        // What is not Python at all comes before what is refused, a stray `$` before that, `_ctx` before that.
        ("x +", "syntax: invalid syntax: unexpected the end"),
        (") + $x", "syntax: All references must use $ctx.xxx or $env.xxx form."),
        ("1 # $5", "syntax: All references must use $ctx.xxx or $env.xxx form."),
        ("$x # _ctx", "syntax: Use $ctx/$env references instead of _ctx/_env."),
    ]);
}

#[test]
fn text_that_is_no_expression_is_a_syntax_error() {
    let texts = [
        "",
        "# only",
        "1 2",
        "1 +\n2",
        "1\n2",
        "(1]",
        "1)",
        "'abc",
        "'''abc'",
        "1 not 2",
        "- not 1",
        "1 = 2",
        "x y",
        "017",
        "1_",
        "1__0",
        "0x",
        "0b2",
        "1e",
        "1.a",
        "12abc",
        "'\\x4'",
        "'\\ud800'",
        "'\\N{DASH}'",
        "1 \\ 2",
        "\\",
        "x.for",
        "(*x)",
        "x[]",
        "{1: 2, 3}",
        "f(x",
        "1 if 2",
        "lambda x y: 1",
        "# c\n  1",
        "$ctx.a$ctx.b",
        "1 ? 2",
        "'a'\0",
        "for",
        "1 -> 2",
    ];
    for text in texts {
        assert!(Expression::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn python_layout_and_literals_are_read() {
    check(&[
        ("(1 # one\n + 2)", "int 3"),
        ("# first\n1 # last\n# after", "int 1"),
        ("1 + \\\n2", "int 3"),
        ("1or 2", "int 1"),
        ("0o17 + 0XfF + 0b_11 + 00", "int 273"),
        ("1_0.5_0e0_1", "float 105.0"),
        (".5 + 1.", "float 1.5"),
        ("1e400", "float inf"),
        ("'a' \"b\" '''c\nd''' r'\\n' u'é'", "str 'abc\\nd\\\\né'"),
        (r#"'\x41\u00e9\U0001f600\101\0\q\"\'\\\t'"#, r#"str 'Aé😀A\x00\\q"\'\\\t'"#),
        ("'a\\\nb'", "str 'ab'"),
    ]);
}

// References.

#[test]
fn references_follow_mapping_keys_only() {
    check(&[
        ("$ctx.params.d.p.q", "int 9"),
        ("$ctx.params.d", "dict {'k': 1, '': 2, 'p': {'q': 9}}"),
        ("$ctx.params.big", "int 18446744073709551615"),
        ("$env.A", "str 'x'"),
        ("$env.A.B", "$env.A.B not found."),
        ("$env.a", "$env.a not found."),
        ("$ctx.nowhere", "$ctx.nowhere not found."),
        ("$ctx.params.items.0", "$ctx.params.items.0 not found."),
        ("$ctx.params.s.upper", "$ctx.params.s.upper not found."),
        ("$ctx.params.nil.x", "$ctx.params.nil.x not found."),
        ("$ctx.params.d.", "$ctx.params.d. not found."),
        ("$ctx.params..d", "$ctx.params..d not found."),
        // A missing name is never false, but one that is not needed is not looked up.
        ("$ctx.params.x or 1", "$ctx.params.x not found."),
        ("1 or $ctx.params.x", "int 1"),
    ]);
}

// Values.

#[test]
fn integers_are_exact() {
    check(&[
        ("2 ** 100 - 1", "int 1267650600228229401496703205375"),
        ("-7 % 3 + 7 % -3 * 10", "int -18"),
        ("True + True", "int 2"),
        ("-True", "int -1"),
        ("(-1) ** 10 ** 30", "int 1"),
        ("0 ** 0", "int 1"),
        ("9007199254740993 == 9007199254740993.0", "bool False"),
        ("9007199254740993 > 9007199254740992.0", "bool True"),
        ("10 ** 400 > 1e308", "bool True"),
        ("10 ** 400 < 1e400", "bool True"),
        ("True == 1 == 1.0", "bool True"),
        ("5 % 0", "integer modulo by zero"),
    ]);
}

#[test]
fn division_rounds_once_and_floats_follow_python() {
    check(&[
        ("10 ** 400 / 10 ** 399", "float 10.0"),
        ("9007199254740993 / 1", "float 9007199254740992.0"),
        ("1 / 3", "float 0.3333333333333333"),
        ("1 / 10 ** 323", "float 1e-323"),
        ("1 / 10 ** 400", "float 0.0"),
        ("0 / -3", "float -0.0"),
        ("10 ** 400 / 3", "integer division result too large for a float"),
        ("10 ** 400 + 1.0", "int too large to convert to float"),
        ("1.0 / 0", "float division by zero"),
        ("1 / False", "division by zero"),
        ("5.0 % 0", "float modulo"),
        ("-7.5 % 2", "float 0.5"),
        ("1e308 * 10 % 1", "float nan"),
        ("2 ** -1", "float 0.5"),
        ("0 ** -1", "0.0 cannot be raised to a negative power"),
        ("10.0 ** 400", "(34, 'Numerical result out of range')"),
        ("(-8) ** 0.5", "a fractional power of a negative number is complex"),
        ("2.0 ** -24", "float 5.960464477539063e-08"),
        ("1e15 * 10", "float 1e+16"),
        ("1 / 8192", "float 0.0001220703125"),
    ]);
}

#[test]
fn comparisons_know_their_kinds() {
    check(&[
        ("$ctx.params.pairs == $ctx.params.pairs", "bool True"),
        ("$ctx.params.items < $ctx.params.items + $ctx.params.items", "bool True"),
        ("'Z' < 'a' < 'é'", "bool True"),
        ("1 < 2.5 < True", "bool False"),
        ("'1' == 1 or None == False", "bool False"),
        ("1 < 'a'", "'<' not supported between instances of 'int' and 'str'"),
        ("None >= None", "'>=' not supported between instances of 'NoneType' and 'NoneType'"),
        ("$ctx.params.items > $ctx.params.pairs", "'>' not supported between instances of 'int' and 'list'"),
        ("1.0 in $ctx.params.items", "bool True"),
        ("'' in 'abc'", "bool True"),
        ("1 in $ctx.params.d", "bool False"),
        ("'k' not in $ctx.params.d", "bool False"),
        ("$ctx.params.d in $ctx.params.d", "unhashable type: 'dict'"),
        ("1 in 'a'", "'in <string>' requires string as left operand, not int"),
        ("1 in 1", "argument of type 'int' is not iterable"),
    ]);
}

#[test]
fn operators_refuse_other_kinds_in_pythons_words() {
    check(&[
        ("1 + 'a'", "unsupported operand type(s) for +: 'int' and 'str'"),
        ("'a' + 1", "can only concatenate str (not \"int\") to str"),
        ("$ctx.params.items + 'a'", "can only concatenate list (not \"str\") to list"),
        ("None - 1", "unsupported operand type(s) for -: 'NoneType' and 'int'"),
        ("'a' * 1.5", "can't multiply sequence by non-int of type 'float'"),
        ("'a' ** 2", "unsupported operand type(s) for ** or pow(): 'str' and 'int'"),
        ("-'a'", "bad operand type for unary -: 'str'"),
        ("'ab' * -1", "str ''"),
        ("True * 'ab'", "str 'ab'"),
        ("$ctx.params.items * 2", "list [1, 2, 3, 1, 2, 3]"),
    ]);
}

#[test]
fn percent_formats_strings() {
    check(&[
        ("'%s|%%' % None", "str 'None|%'"),
        ("'%5.2s|' % 'abc'", "str '   ab|'"),
        ("'%-5d|' % 3.9", "str '3    |'"),
        ("'%+06.1f' % 2.25", "str '+002.2'"),
        ("'%#x' % 255 + '%X' % 255 + '%o' % 8", "str '0xffFF10'"),
        ("'%.3d' % -5", "str '-005'"),
        ("'%e' % 12345.678", "str '1.234568e+04'"),
        ("'%g' % 0.0001 + ' %g' % 1e6 + ' %#.3g' % 1", "str '0.0001 1e+06 1.00'"),
        ("'%c' % 233 + '%c' % 'x'", "str 'éx'"),
        (
            "'%r' % $ctx.params.text",
            r#"str '"it\'sé\u0301\\u200b\\n"'"#.replace(r"\u0301", "\u{301}").as_str(),
        ),
        ("'%s' % $ctx.params.items", "str '[1, 2, 3]'"),
        ("'%(k)s-%(p)s' % $ctx.params.d", "str \"1-{'q': 9}\""),
        ("'plain' % $ctx.params.items", "str 'plain'"),
        ("'plain' % 1", "not all arguments converted during string formatting"),
        ("'%s %s' % $ctx.params.items", "not enough arguments for format string"),
        ("'%(x)s' % $ctx.params.d", "'x'"),
        ("'%(x' % $ctx.params.d", "incomplete format key"),
        ("'%(x)s' % 1", "format requires a mapping"),
        ("'%d' % 'a'", "%d format: a real number is required, not str"),
        ("'%x' % 1.0", "%x format: an integer is required, not float"),
        ("'%f' % 'a'", "must be real number, not str"),
        ("'é%y' % 1", "unsupported format character 'y' (0x79) at index 2"),
        ("'%' % 1", "incomplete format"),
        ("'%c' % 'ab'", "%c requires int or char"),
    ]);
}

#[test]
fn values_come_from_json_and_go_back() {
    let json = json!({ "a": [1, -1, 1.0, true, null, "x"], "b": { "c": u64::MAX } });
    let value = Value::from_json(&json);
    assert_eq!(value.to_json(), Some(json));
    assert_eq!(Value::Int(BigInt::from(u64::MAX) + 1).to_json(), None);
    assert_eq!(Value::List(vec![Value::Float(f64::INFINITY)]).to_json(), None);
    assert!(
        Value::from_json(&json!({ "a": 1, "b": true }))
            .py_eq(&Value::from_json(&json!({ "b": 1.0, "a": 1 })))
    );
}

// Hostile input.

#[test]
fn nesting_is_limited_in_every_form() {
    let forms = [
        ("(", "1", ")"),
        ("[", "1", "]"),
        ("{", "1", "}"),
        ("f(", "1", ")"),
        ("x[", "1", "]"),
        ("-", "1", ""),
        ("+ ~ ", "1", ""),
        ("not ", "1", ""),
        ("2 ** ", "1", ""),
        ("2 ** -", "1", ""),
        ("1 if 1 else ", "1", ""),
        ("lambda: ", "1", ""),
        ("lambda x=", "1", ": 1"),
        ("(not -", "1", ") ** 2"),
        ("(x := ", "1", ")"),
        ("{1: ", "1", "}"),
        ("[x for x in ", "y", "]"),
        ("f(*", "1", ")"),
        ("(yield ", "1", ")"),
    ];
    for (open, inner, close) in forms {
        for count in [65, 1000, 10_000] {
            let text = format!("{}{inner}{}", open.repeat(count), close.repeat(count));
            let kind = Expression::parse(&text).unwrap_err().kind().clone();
            assert!(
                matches!(kind, SyntaxKind::TooDeep | SyntaxKind::TooLong(_)),
                "{open} * {count}: {kind:?}"
            );
        }
        // Unclosed brackets take the same way out.
        assert!(Expression::parse(&open.repeat(1000)).is_err());
    }
    check(&[(format!("{}1{}", "(".repeat(63), ")".repeat(63)).as_str(), "int 1")]);
    check(&[(format!("{}1", "-".repeat(63)).as_str(), "int -1")]);
}

#[test]
fn the_deepest_expressions_need_little_stack() {
    // Half of what a thread has by default, and several times what is needed when the code is optimised.
    let thread = std::thread::Builder::new().stack_size(1024 * 1024);
    let deepest = thread.spawn(|| {
        let brackets = format!("{}1{}", "(".repeat(64), ")".repeat(64));
        let mixed = format!("{}1{}", "(0 or 1 and not 2 < 3 + 4 * -".repeat(21), ")".repeat(21));
        let powers = format!("{}1", "2 ** -".repeat(32));
        for text in [brackets, mixed, powers] {
            let result = eval_in(&text, &params());
            assert!(result.is_ok(), "{text}: {result:?}");
        }
        for open in ["{1: [f(x[", "(x := lambda x=", "1 if 1 else ", "(not -", "[x for x in "] {
            assert!(Expression::parse(&open.repeat(60)).is_err());
        }
    });
    deepest.unwrap().join().unwrap();
}

#[test]
fn long_texts_are_refused_and_long_chains_are_not_deep() {
    let text = "(".repeat(1_000_000);
    assert_eq!(*Expression::parse(&text).unwrap_err().kind(), SyntaxKind::TooLong(1_000_000));
    for (link, expected) in [("+1", "int 20001"), ("*1", "int 1"), ("%2", "int 1"), ("-1", "int -19999")] {
        check(&[(format!("1{}", link.repeat(20_000)).as_str(), expected)]);
    }
    check(&[(format!("1{}", "==1".repeat(20_000)).as_str(), "bool True")]);
    check(&[(format!("1{}", " and 1".repeat(10_000)).as_str(), "int 1")]);
    check(&[(format!("1{}", "|1".repeat(20_000)).as_str(), "syntax: Unsupported syntax: BitOr")]);
    check(&[(
        format!("x{}", "()".repeat(20_000)).as_str(),
        "syntax: Only $ctx/$env references are allowed.",
    )]);
    check(&[("'a'".repeat(3).as_str(), "str 'aaa'")]);
}

#[test]
fn huge_results_are_refused_before_they_are_made() {
    let int = "integer is too large (limit 4096 bits)";
    let string = "string is too large (limit 1 MiB)";
    let list = "list is too large (limit 1 MiB)";
    check(&[
        ("2 ** 10 ** 9", int),
        ("2 ** 4096", int),
        ("2 ** 4095 * 2", int),
        ("2 ** 4095 + 2 ** 4095", int),
        ("(2 ** 4000) ** (2 ** 4000)", int),
        ("2 ** 4095 - 1 + 2 ** 4095 > 0", "bool True"),
        ("'a' * 10 ** 9", string),
        ("'ab' * 2 ** 62", string),
        ("'a' * 2 ** 80", "cannot fit 'int' into an index-sized integer"),
        ("'' * 2 ** 62", "str ''"),
        ("'%1000000000d' % 1", string),
        ("'%99999999999999999999999999d' % 1", string),
        ("'%.1000000000f' % 1", string),
        ("'%900000d%%%900000d' % 1", "not enough arguments for format string"),
        ("'%(k)900000d%(k)900000d' % $ctx.params.d", string),
        ("$ctx.params.items * 10 ** 9", list),
        ("'' in 'a' * 1048576", "bool True"),
        ("('a' * 1048576) + 'a'", string),
        ("'%.1048000g' % 1 == '1'", "bool True"),
        ("'%1048576d' % 1 == ''", "bool False"),
    ]);
    let literal = "9".repeat(60_000);
    assert_eq!(shown(&literal), format!("syntax: {int}"));
    assert_eq!(shown(&format!("0x{}1", "0".repeat(60_000))), "int 1");
    // A short list of long strings is large.
    let scope = data(json!({ "params": { "l": ["a".repeat(1000)] } }));
    assert_eq!(eval_in("$ctx.params.l * 1000 == 0", &scope), Ok(Value::Bool(false)));
    assert_eq!(eval_in("$ctx.params.l * 2000", &scope), Err(list.to_owned()));
}

#[test]
fn repeated_large_work_is_bounded() {
    let text = vec!["'a' * 1000000 == ''"; 2000].join(" or ");
    let error = Expression::parse(&text).unwrap().eval(&params()).unwrap_err();
    assert_eq!(*error.cause(), Cause::Limit("expression reads or makes too much data (limit 64 MiB)"));
    let text = format!("'a' * 1000000 {}", "+ 'a' ".repeat(10_000));
    assert!(matches!(eval_in(&text, &params()), Err(cause) if cause.contains("64 MiB")));
    let scope = data(json!({ "params": { "s": "a".repeat(2_000_000) } }));
    let text = vec!["$ctx.params.s == ''"; 2000].join(" or ");
    assert!(matches!(eval_in(&text, &scope), Err(cause) if cause.contains("64 MiB")));
    // What is only read may be larger than what may be made.
    assert_eq!(eval_in("$ctx.params.s == ''", &scope), Ok(Value::Bool(false)));
}

#[test]
fn deep_data_is_refused_not_followed() {
    let nest = |levels| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    let scope = data(json!({ "fine": nest(127), "deep": nest(128) }));
    assert_eq!(eval_in("$ctx.fine == $ctx.fine", &scope), Ok(Value::Bool(true)));
    assert_eq!(eval_in("$ctx.deep", &scope), Err("data is nested too deeply (limit 128 levels)".to_owned()));
}

const FRAGMENTS: [&str; 62] = [
    "1",
    "0",
    "2.5",
    "1e400",
    "10 ** 400",
    "'a'",
    "'%s'",
    "'%5.1f %d'",
    "\"",
    "'",
    "'''",
    "$ctx.params.n",
    "$ctx.params",
    "$ctx.params.items",
    "$ctx.",
    "$env.A",
    "$",
    "x",
    "f(",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    ":=",
    "=",
    ".",
    "...",
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "@",
    "~",
    "<",
    ">=",
    "==",
    "!=",
    "<<",
    "|",
    "in",
    "not",
    "not in",
    "is",
    "and",
    "or",
    "if",
    "else",
    "lambda",
    "for",
    "yield",
    "await",
    "\n",
    "\\",
    "#",
    "é",
];

/// Text of the right shape: operands between operators, sometimes in brackets.
fn shaped() -> impl Strategy<Value = String> {
    let operands = [
        "0",
        "1",
        "-3",
        "2.5",
        "1e308",
        "1e400",
        "10 ** 400",
        "2 ** 4095",
        "True",
        "None",
        "''",
        "'abc'",
        "'%s'",
        "'%d'",
        "'%(k)r'",
        "'%-9.3g'",
        "$ctx.params.n",
        "$ctx.params.s",
        "$ctx.params.items",
        "$ctx.params.d",
        "$ctx.params.pi",
        "$ctx.params.pairs",
        "$env.A",
        "$ctx.params.x",
    ];
    let operators = [
        "+",
        "-",
        "*",
        "/",
        "%",
        "**",
        "==",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
        "in",
        "not in",
        "and",
        "or",
        "//",
        "is",
        "if 1 else",
    ];
    let leaf = proptest::sample::select(operands.to_vec()).prop_map(str::to_owned);
    leaf.prop_recursive(5, 40, 2, move |inner| {
        let operator = proptest::sample::select(operators.to_vec());
        prop_oneof![
            4 => (inner.clone(), operator, inner.clone()).prop_map(|(left, op, right)| format!("{left} {op} {right}")),
            1 => inner.clone().prop_map(|inner| format!("({inner})")),
            1 => inner.clone().prop_map(|inner| format!("-{inner}")),
            1 => inner.prop_map(|inner| format!("not {inner}")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,40}") {
        let _result = eval_in(&text, &params());
    }

    #[test]
    fn token_soup_never_panics(
        fragments in proptest::collection::vec(proptest::sample::select(FRAGMENTS.to_vec()), 0..12),
        separator in proptest::sample::select(vec!["", " "]),
    ) {
        let text = fragments.join(separator);
        if let Err(error) = Expression::parse(&text) {
            let stripped = text.trim();
            prop_assert!(stripped.get(error.offset()..).is_some(), "{:?} at {}", text, error.offset());
        }
        let _result = eval_in(&text, &params());
    }

    #[test]
    fn shaped_text_never_panics(text in shaped()) {
        let _result = eval_in(&text, &params());
    }

    #[test]
    fn arbitrary_formats_never_panic(
        format in "a?(%(\\(k\\))?[-+ #0]{0,2}[0-9*]{0,7}(\\.[0-9]{0,7})?[a-zA-Z%é]){1,3}",
        value in proptest::sample::select(vec!["1", "1e400", "-2.5e-300", "'s'", "$ctx.params.d", "10 ** 400", "None"]),
    ) {
        let _result = eval_in(&format!("'{format}' % {value}"), &params());
    }

    #[test]
    fn integers_compute_as_i128(left in any::<i64>(), right in any::<i64>()) {
        let sum = i128::from(left) + i128::from(right);
        let product = i128::from(left) * i128::from(right);
        let text = format!("({left}) + ({right}) == ({sum}) and ({left}) * ({right}) == ({product})");
        prop_assert_eq!(eval_in(&text, &params()), Ok(Value::Bool(true)));
        prop_assume!(right != 0);
        let text = format!("(({left}) % ({right})) * {} >= 0", right.signum());
        prop_assert_eq!(eval_in(&text, &params()), Ok(Value::Bool(true)));
    }

    #[test]
    fn floats_read_back_from_their_repr(value in any::<f64>().prop_filter("finite", |value| value.is_finite())) {
        let scope = data(json!({ "f": value }));
        let repr = eval_in("'%r' % $ctx.f", &scope).unwrap();
        prop_assert_eq!(eval_in(repr.as_str().unwrap(), &scope), Ok(Value::Float(value)));
    }
}
