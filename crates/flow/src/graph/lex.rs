//! Tokens of a graph, by Python's rules: brackets join lines, a backslash too, everything else ends one.

use super::ast::Literal;
use super::{Problem, Span};

/// Deepest nesting of brackets.
pub(super) const MAX_DEPTH: usize = 64;
/// Most tokens; ten thousand tasks in groups and chains need a third of them.
const MAX_TOKENS: usize = 100_000;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Name,
    Literal(Literal),
    Shift,
    And,
    Or,
    Percent,
    Open,
    Close,
    OpenSquare,
    CloseSquare,
    Comma,
    Semicolon,
    Equals,
    Minus,
    Plus,
    Dot,
    Newline,
    End,
}

#[derive(Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) span: Span,
}

const KEYWORDS: [&str; 32] = [
    "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else",
    "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not",
    "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, Problem> {
    let mut lexer = Lexer { text, at: 0, open: Vec::new(), tokens: Vec::new() };
    lexer.run()?;
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    open: Vec<(u8, usize)>,
    tokens: Vec<Token>,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn problem(&self, message: impl Into<String>, length: usize) -> Problem {
        Problem::new(message, Span::new(self.at, self.at + length))
    }

    fn push(&mut self, kind: Kind, length: usize) {
        self.tokens.push(Token { kind, span: Span::new(self.at, self.at + length) });
        self.at += length;
    }

    fn run(&mut self) -> Result<(), Problem> {
        self.line_start()?;
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\u{c}' => self.at += 1,
                '#' => self.skip_comment(),
                '\n' | '\r' => self.line_break()?,
                '\\' => self.join_lines()?,
                '"' | '\'' => self.string()?,
                '0'..='9' => self.number()?,
                '.' if self.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) => self.number()?,
                '_' => self.name(),
                _ if c.is_alphabetic() => self.name(),
                _ => self.operator(c)?,
            }
            self.check_name()?;
            if self.tokens.len() > MAX_TOKENS {
                return Err(
                    self.problem(format!("the graph has more than {MAX_TOKENS} names and operators"), 1)
                );
            }
        }
        if let Some((bracket, at)) = self.open.last() {
            let message = format!("'{}' was never closed", char::from(*bracket));
            return Err(Problem::new(message, Span::new(*at, at + 1)));
        }
        self.push(Kind::Newline, 0);
        self.push(Kind::End, 0);
        Ok(())
    }

    /// A statement begins in the first column.
    fn line_start(&mut self) -> Result<(), Problem> {
        let rest = self.rest();
        let indent = rest.len() - rest.trim_start_matches([' ', '\t', '\u{c}']).len();
        let first = rest[indent..].chars().next();
        // A form feed begins the line anew, as in Python.
        if indent > 0
            && !rest[..indent].ends_with('\u{c}')
            && !matches!(first, None | Some('\n' | '\r' | '#'))
        {
            let message = "unexpected indent: a statement of a graph begins in the first column";
            return Err(self
                .problem(message, indent)
                .help("remove the spaces, or put the lines in parentheses"));
        }
        Ok(())
    }

    fn skip_comment(&mut self) {
        let rest = self.rest();
        self.at += rest.find(['\n', '\r']).unwrap_or(rest.len());
    }

    fn line_break(&mut self) -> Result<(), Problem> {
        let length = if self.rest().starts_with("\r\n") { 2 } else { 1 };
        if !self.open.is_empty() {
            self.at += length;
            return Ok(());
        }
        self.push(Kind::Newline, length);
        self.line_start()
    }

    fn join_lines(&mut self) -> Result<(), Problem> {
        let rest = &self.rest()[1..];
        let length = if rest.starts_with("\r\n") {
            2
        } else if rest.starts_with(['\n', '\r']) {
            1
        } else {
            return Err(self.problem("a backslash may only stand at the end of a line", 1));
        };
        self.at += 1 + length;
        Ok(())
    }

    fn name(&mut self) {
        let rest = self.rest();
        let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let kind = match &rest[..length] {
            "None" => Kind::Literal(Literal::None),
            "True" => Kind::Literal(Literal::Bool(true)),
            "False" => Kind::Literal(Literal::Bool(false)),
            _ => Kind::Name,
        };
        self.push(kind, length);
    }

    fn check_name(&self) -> Result<(), Problem> {
        let Some(Token { kind: Kind::Name, span }) = self.tokens.last() else { return Ok(()) };
        let name = self.text.get(span.start..span.end).unwrap_or_default();
        if KEYWORDS.contains(&name) {
            let message =
                format!("'{name}' is a word of Python, not a task; a graph has only tasks and operators");
            return Err(Problem::new(message, *span));
        }
        if matches!(self.peek(), Some('"' | '\'')) {
            return Err(Problem::new("a text in a graph has no prefix", *span));
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Problem> {
        let rest = self.rest();
        let mut length = 0;
        let mut previous = ' ';
        for c in rest.chars() {
            let sign = matches!(c, '+' | '-') && matches!(previous, 'e' | 'E') && !rest.starts_with("0x");
            if !(c.is_alphanumeric() || c == '_' || c == '.' || sign) {
                break;
            }
            length += c.len_utf8();
            previous = c;
        }
        let text = &rest[..length];
        let Some(literal) = number(text) else {
            return Err(self.problem(format!("'{text}' is not a number a graph can use"), length));
        };
        self.push(Kind::Literal(literal), length);
        Ok(())
    }

    fn operator(&mut self, c: char) -> Result<(), Problem> {
        let (kind, length) = match c {
            '>' if self.rest().starts_with(">>=") => {
                return Err(self.problem("'>>=' is not an operator of a graph", 3));
            }
            '>' if self.rest().starts_with(">>") => (Kind::Shift, 2),
            '>' => return Err(self.problem("'>' is not an operator of a graph", 1).help("write 'a >> b'")),
            '&' => (Kind::And, 1),
            '|' => (Kind::Or, 1),
            '%' => (Kind::Percent, 1),
            '(' | '[' | '{' => return self.bracket(c),
            ')' | ']' | '}' => return self.close(c),
            ',' => (Kind::Comma, 1),
            ';' => (Kind::Semicolon, 1),
            '=' if self.rest().starts_with("==") => {
                return Err(self.problem("'==' compares; a graph only connects tasks", 2));
            }
            '=' => (Kind::Equals, 1),
            '-' if self.rest().starts_with("->") => {
                return Err(self.problem("'->' is not an operator of a graph", 2).help("write 'a >> b'"));
            }
            '-' => (Kind::Minus, 1),
            '+' => (Kind::Plus, 1),
            '.' => (Kind::Dot, 1),
            '<' => {
                return Err(self
                    .problem("'<' is not an operator of a graph", 1)
                    .help("write 'a >> b', in this order"));
            }
            ':' => return Err(self.problem("':' has no place in a graph", 1)),
            _ => {
                let message = format!("unexpected character {c:?} (U+{:04X}) in a graph", u32::from(c));
                return Err(self.problem(message, c.len_utf8()));
            }
        };
        self.push(kind, length);
        Ok(())
    }

    fn bracket(&mut self, c: char) -> Result<(), Problem> {
        let kind = match c {
            '(' => Kind::Open,
            '[' => Kind::OpenSquare,
            _ => {
                let message = "a set or mapping has no place in a graph: the reference would skip it";
                return Err(self.problem(message, 1).help("write a list: [a, b]"));
            }
        };
        if self.open.len() >= MAX_DEPTH {
            return Err(self.problem(format!("brackets are nested deeper than {MAX_DEPTH} levels"), 1));
        }
        self.open.push((if c == '(' { b'(' } else { b'[' }, self.at));
        self.push(kind, 1);
        Ok(())
    }

    fn close(&mut self, c: char) -> Result<(), Problem> {
        let (kind, opener) = match c {
            ')' => (Kind::Close, b'('),
            _ => (Kind::CloseSquare, b'['),
        };
        match self.open.pop() {
            Some((bracket, _)) if bracket == opener && c != '}' => {
                self.push(kind, 1);
                Ok(())
            }
            Some(_) | None => Err(self.problem(format!("'{c}' closes nothing here"), 1)),
        }
    }

    fn string(&mut self) -> Result<(), Problem> {
        let rest = self.rest();
        let quote = rest.chars().next().unwrap_or('"');
        let unfinished = || self.problem("this text has no closing quote", 1);
        if rest[1..].starts_with(quote) && rest[2..].starts_with(quote) {
            return Err(self.problem("a text in a graph has one quote at each end", 3));
        }
        let mut text = String::new();
        let mut verbatim = true;
        let mut chars = rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                _ if c == quote => {
                    let length = at + 1;
                    self.push(Kind::Literal(Literal::Str { text, verbatim }), length);
                    return Ok(());
                }
                '\n' | '\r' => return Err(unfinished()),
                '\\' => {
                    verbatim = false;
                    escape(&mut chars, &mut text).ok_or_else(|| {
                        let span = Span::new(self.at + at, self.at + at + 1);
                        Problem::new("this backslash begins no escape that a graph knows", span)
                    })?;
                }
                _ => text.push(c),
            }
        }
        Err(unfinished())
    }
}

/// One escape of a Python text; an unknown one stands for itself, as in Python.
fn escape(chars: &mut std::iter::Skip<std::str::CharIndices<'_>>, text: &mut String) -> Option<()> {
    let (_, c) = chars.next()?;
    let simple = match c {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        '\\' | '\'' | '"' => c,
        '\n' => return Some(()),
        'x' => return number_escape(chars, 2, text),
        'u' => return number_escape(chars, 4, text),
        'U' => return number_escape(chars, 8, text),
        'N' | '\r' | '0'..='7' => return None,
        _ => {
            text.push('\\');
            c
        }
    };
    text.push(simple);
    Some(())
}

fn number_escape(
    chars: &mut std::iter::Skip<std::str::CharIndices<'_>>,
    digits: usize,
    text: &mut String,
) -> Option<()> {
    let mut value = 0_u32;
    for _ in 0..digits {
        let (_, digit) = chars.next()?;
        value = value.checked_mul(16)?.checked_add(digit.to_digit(16)?)?;
    }
    text.push(char::from_u32(value)?);
    Some(())
}

/// A Python number that JSON can hold.
fn number(text: &str) -> Option<Literal> {
    let grouped = |digits: &str| !digits.starts_with('_') && !digits.ends_with('_') && !digits.contains("__");
    for (prefix, base) in [("0x", 16), ("0X", 16), ("0o", 8), ("0O", 8), ("0b", 2), ("0B", 2)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            let digits = digits.strip_prefix('_').unwrap_or(digits);
            return grouped(digits)
                .then(|| i64::from_str_radix(&digits.replace('_', ""), base).ok())
                .flatten()
                .map(Literal::Int);
        }
    }
    if !text.split(['.', 'e', 'E', '+', '-']).all(grouped) {
        return None;
    }
    let clean = text.replace('_', "");
    if clean.bytes().all(|byte| byte.is_ascii_digit()) {
        // Python has no leading zeros, except in zero itself.
        let leading = clean.starts_with('0') && clean.bytes().any(|byte| byte != b'0');
        return if leading { None } else { clean.parse().ok().map(Literal::Int) };
    }
    let float = clean.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    float.then(|| clean.parse::<f64>().ok()).flatten().filter(|value| value.is_finite()).map(Literal::Float)
}
