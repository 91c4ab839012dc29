//! Tokens of a native graph.

use super::{Where, refuse};
use crate::diagnostic::Diagnostic;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Shift,
    Template,
    Text,
    Number,
    Ident,
    Open,
    Close,
    OpenBrace,
    CloseBrace,
    Colon,
    Semicolon,
    Comma,
    Equals,
    End,
}

impl Kind {
    /// The name that messages use.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Shift => "SHIFT",
            Self::Template => "TEMPLATE",
            Self::Text => "STRING",
            Self::Number => "NUMBER",
            Self::Ident => "IDENT",
            Self::Open => "LPAREN",
            Self::Close => "RPAREN",
            Self::OpenBrace => "LBRACE",
            Self::CloseBrace => "RBRACE",
            Self::Colon => "COLON",
            Self::Semicolon => "SEMI",
            Self::Comma => "COMMA",
            Self::Equals => "EQUAL",
            Self::End => "EOF",
        }
    }
}

#[derive(Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) value: String,
    /// Where it begins, in characters as messages count them, and its bytes.
    pub(super) character: usize,
    pub(super) bytes: (usize, usize),
}

pub(super) fn tokens(text: &str, place: &Where<'_>) -> Result<Vec<Token>, Diagnostic> {
    let mut lexer = Lexer { text, place, byte: 0, character: 0 };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.token()? {
        tokens.push(token);
    }
    tokens.push(lexer.make(Kind::End, String::new(), 0));
    Ok(tokens)
}

struct Lexer<'a> {
    text: &'a str,
    place: &'a Where<'a>,
    byte: usize,
    character: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.byte..).unwrap_or_default()
    }

    fn skip(&mut self, length: usize) {
        let skipped = self.rest().get(..length).unwrap_or_default();
        self.character += skipped.chars().count();
        self.byte += length;
    }

    fn make(&mut self, kind: Kind, value: String, length: usize) -> Token {
        let token = Token { kind, value, character: self.character, bytes: (self.byte, self.byte + length) };
        self.skip(length);
        token
    }

    fn problem(&self, message: String, length: usize) -> Diagnostic {
        refuse(message, self.place.position(self.byte, self.byte + length))
    }

    fn token(&mut self) -> Result<Option<Token>, Diagnostic> {
        let c = loop {
            let Some(c) = self.rest().chars().next() else { return Ok(None) };
            match c {
                ' ' | '\t' | '\r' | '\n' => self.skip(1),
                '#' => self.skip(self.rest().find('\n').unwrap_or_else(|| self.rest().len())),
                _ => break c,
            }
        };
        let kind = match c {
            '>' if self.rest().starts_with(">>") => {
                return Ok(Some(self.make(Kind::Shift, ">>".to_owned(), 2)));
            }
            '>' => {
                let message =
                    format!("Unsupported operator '>' at position {}. Use '>>' only.", self.character);
                return Err(self.problem(message, 1));
            }
            '{' if self.rest().starts_with("{{") => return self.template().map(Some),
            '\'' | '"' => return self.string(c).map(Some),
            '0'..='9' => return Ok(Some(self.while_true(Kind::Number, |c| c.is_ascii_digit()))),
            '(' => Kind::Open,
            ')' => Kind::Close,
            '{' => Kind::OpenBrace,
            '}' => Kind::CloseBrace,
            ':' => Kind::Colon,
            ';' => Kind::Semicolon,
            ',' => Kind::Comma,
            '=' => Kind::Equals,
            _ if c.is_alphabetic() || c == '_' => {
                return Ok(Some(self.while_true(Kind::Ident, |c| c.is_alphanumeric() || c == '_')));
            }
            _ => {
                let message = format!("Unexpected character '{c}' at position {}.", self.character);
                return Err(self.problem(message, c.len_utf8()));
            }
        };
        Ok(Some(self.make(kind, c.to_string(), 1)))
    }

    fn while_true(&mut self, kind: Kind, belongs: fn(char) -> bool) -> Token {
        let rest = self.rest();
        let length = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.make(kind, rest[..length].to_owned(), length)
    }

    fn template(&mut self) -> Result<Token, Diagnostic> {
        let rest = self.rest();
        let Some(end) = rest[2..].find("}}") else {
            return Err(
                self.problem(format!("Unterminated template expression at position {}.", self.character), 2)
            );
        };
        let value = format!("{{{{{}}}}}", rest[2..2 + end].trim());
        Ok(self.make(Kind::Template, value, end + 4))
    }

    /// A backslash takes the next character literally.
    fn string(&mut self, quote: char) -> Result<Token, Diagnostic> {
        let mut value = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => value.extend(chars.next().map(|(_, c)| c)),
                _ if c == quote => return Ok(self.make(Kind::Text, value, at + 1)),
                _ => value.push(c),
            }
        }
        Err(self.problem(format!("Unterminated string at position {}.", self.character), 1))
    }
}
