//! Text to tokens, by Python's rules.
//!
//! Unlike the original, which replaces references in the raw text, references are tokens of their own: a `$`
//! inside a string literal is just text.

mod number;
mod string;

use num_bigint::BigInt;

use super::error::{SyntaxError, SyntaxKind};
use super::limits;
use super::node::Root;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token<'a> {
    /// An operator, a bracket or a keyword.
    Symbol(&'static str),
    Name(&'a str),
    Reference(Root, &'a str),
    Int(BigInt),
    Float(f64),
    Imaginary,
    Str(String),
    Bytes,
    /// An f-string. Its inside is not read: it is refused as a whole.
    Formatted,
    /// A line break outside brackets.
    Newline,
    End,
}

#[derive(Debug, Clone)]
pub(super) struct Positioned<'a> {
    pub(super) token: Token<'a>,
    pub(super) offset: usize,
}

/// Longest first, so that the first match is the right one.
const SYMBOLS: [&str; 34] = [
    "...", "**", "//", "==", "!=", "<=", ">=", "<<", ">>", ":=", "+", "-", "*", "/", "%", "@", "&", "|", "^",
    "~", "<", ">", "(", ")", "[", "]", "{", "}", ",", ":", ".", "=", ";", "!",
];

const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

pub(super) fn tokens(text: &str) -> Result<Vec<Positioned<'_>>, SyntaxError> {
    let mut lexer = Lexer { text, at: 0, brackets: Vec::new(), tokens: Vec::new() };
    lexer.run()?;
    Ok(lexer.tokens)
}

/// A character of a name or a reference's path.
fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// The open brackets and where they opened.
    brackets: Vec<(char, usize)>,
    tokens: Vec<Positioned<'a>>,
}

impl<'a> Lexer<'a> {
    fn run(&mut self) -> Result<(), SyntaxError> {
        if let Some(offset) = self.text.find('\0') {
            return Err(SyntaxError::invalid("expression cannot contain null bytes", offset));
        }
        // The original looks for stray `$` first, so other errors wait for the end of the text.
        let mut error = None;
        while let Some(c) = self.peek() {
            let offset = self.at;
            let Err(found) = self.step(c) else {
                continue;
            };
            if *found.kind() == SyntaxKind::Reference {
                return Err(found);
            }
            self.at = self.at.max(offset + c.len_utf8());
            error.get_or_insert(found);
        }
        if let Some(error) = error {
            return Err(error);
        }
        if let Some((bracket, offset)) = self.brackets.pop() {
            return Err(SyntaxError::invalid(format!("'{bracket}' was never closed"), offset));
        }
        self.push(Token::End, self.text.len());
        Ok(())
    }

    fn step(&mut self, c: char) -> Result<(), SyntaxError> {
        match c {
            ' ' | '\t' | '\x0c' => self.at += 1,
            '\n' | '\r' => self.line_break(),
            '#' => self.comment()?,
            '\\' => self.continuation()?,
            _ => self.token(c)?,
        }
        Ok(())
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn push(&mut self, token: Token<'a>, offset: usize) {
        self.tokens.push(Positioned { token, offset });
    }

    /// Consumes and returns what `belongs`.
    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let taken = rest.find(|c| !belongs(c)).map_or(rest, |end| &rest[..end]);
        self.at += taken.len();
        taken
    }

    fn token(&mut self, c: char) -> Result<(), SyntaxError> {
        let offset = self.at;
        let is_fraction = self
            .rest()
            .strip_prefix('.')
            .is_some_and(|after| after.starts_with(|c: char| c.is_ascii_digit()));
        let token = match c {
            '$' => self.reference()?,
            '\'' | '"' => self.string("", offset)?,
            '0'..='9' => self.number()?,
            '.' if is_fraction => self.number()?,
            _ if c == '_' || c.is_alphabetic() => self.word()?,
            _ => self.symbol(c)?,
        };
        // Only comment lines may come before the first line of the expression, and it is not indented.
        if self.tokens.is_empty() && offset > 0 && !self.text[..offset].ends_with(['\n', '\r']) {
            return Err(SyntaxError::invalid("unexpected indent", offset));
        }
        self.push(token, offset);
        Ok(())
    }

    fn line_break(&mut self) {
        if self.brackets.is_empty() && !self.tokens.is_empty() {
            self.push(Token::Newline, self.at);
        }
        self.at += 1;
    }

    /// A comment is skipped, but the original's rule about `$` holds in it too.
    fn comment(&mut self) -> Result<(), SyntaxError> {
        loop {
            self.take_while(|c| !matches!(c, '$' | '\n' | '\r'));
            if self.peek() != Some('$') {
                return Ok(());
            }
            self.reference()?;
        }
    }

    fn continuation(&mut self) -> Result<(), SyntaxError> {
        let offset = self.at;
        self.at += 1;
        if self.take_line_break() {
            return Ok(());
        }
        Err(SyntaxError::invalid("unexpected character after line continuation character", offset))
    }

    fn take_line_break(&mut self) -> bool {
        let Some(length) =
            ["\r\n", "\n", "\r"].iter().find(|end| self.rest().starts_with(**end)).map(|end| end.len())
        else {
            return false;
        };
        self.at += length;
        true
    }

    fn reference(&mut self) -> Result<Token<'a>, SyntaxError> {
        let offset = self.at;
        let refused = SyntaxError::new(SyntaxKind::Reference, offset);
        let root = self.reference_root().ok_or_else(|| refused.clone())?;
        self.at += root.text().len() + 1;
        if !self.rest().starts_with(|c: char| c == '_' || c.is_ascii_alphabetic()) {
            return Err(refused);
        }
        Ok(Token::Reference(root, self.take_while(|c| c == '.' || is_word(c))))
    }

    fn reference_root(&self) -> Option<Root> {
        [Root::Ctx, Root::Env]
            .into_iter()
            .find(|root| self.rest().strip_prefix(root.text()).is_some_and(|after| after.starts_with('.')))
    }

    fn word(&mut self) -> Result<Token<'a>, SyntaxError> {
        let offset = self.at;
        let word = self.take_while(is_word);
        if self.rest().starts_with(['\'', '"']) && string::is_prefix(word) {
            return self.string(word, offset);
        }
        // The original's replacement glues the two into a call of an unknown function, `not$ctx.x` included.
        if self.reference_root().is_some() {
            self.reference()?;
            return Err(SyntaxError::new(SyntaxKind::Call, offset));
        }
        let keyword = KEYWORDS.into_iter().find(|keyword| *keyword == word);
        Ok(keyword.map_or(Token::Name(word), Token::Symbol))
    }

    fn symbol(&mut self, c: char) -> Result<Token<'a>, SyntaxError> {
        let offset = self.at;
        let Some(symbol) = SYMBOLS.into_iter().find(|symbol| self.rest().starts_with(symbol)) else {
            return Err(SyntaxError::invalid(format!("invalid character {c:?}"), offset));
        };
        self.at += symbol.len();
        match c {
            '(' | '[' | '{' if self.brackets.len() >= limits::NESTING => {
                return Err(SyntaxError::new(SyntaxKind::TooDeep, offset));
            }
            '(' | '[' | '{' => self.brackets.push((c, offset)),
            ')' | ']' | '}' => self.close(c, offset)?,
            _ => {}
        }
        Ok(Token::Symbol(symbol))
    }

    fn close(&mut self, c: char, offset: usize) -> Result<(), SyntaxError> {
        match self.brackets.pop() {
            Some(('(', _)) if c == ')' => Ok(()),
            Some(('[', _)) if c == ']' => Ok(()),
            Some(('{', _)) if c == '}' => Ok(()),
            Some((open, _)) => {
                let message =
                    format!("closing parenthesis '{c}' does not match opening parenthesis '{open}'");
                Err(SyntaxError::invalid(message, offset))
            }
            None => Err(SyntaxError::invalid(format!("unmatched '{c}'"), offset)),
        }
    }
}
