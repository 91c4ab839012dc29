//! The grammar of a native graph.

use super::lex::{Kind, Token, tokens};
use super::{Where, refuse};
use crate::diagnostic::{Diagnostic, Position};

/// Deepest nesting of braces and quoted branches; deeper ones exceed the number of terms in the reference.
const MAX_DEPTH: usize = 128;

/// One element of a pipeline.
#[derive(Debug, Clone)]
pub(super) enum Term {
    Task {
        node: Option<String>,
        task: String,
        at: Position,
    },
    Pipe {
        name: String,
        at: Position,
    },
    Switch {
        on: String,
        cases: Vec<(String, Vec<Self>)>,
        default: Option<Vec<Self>>,
        at: Position,
    },
    Repeat {
        count: String,
        collect: Option<String>,
        body: Vec<Self>,
        at: Position,
    },
    ForEach {
        over: String,
        item: Option<String>,
        index: Option<String>,
        collect: Option<String>,
        body: Vec<Self>,
        at: Position,
    },
    Until {
        cond: String,
        max_iter: Option<String>,
        collect: Option<String>,
        body: Vec<Self>,
        at: Position,
    },
}

/// Parses a text that is one pipeline.
pub(super) fn pipeline(text: &str, place: &Where<'_>, depth: usize) -> Result<Vec<Term>, Diagnostic> {
    let tokens = tokens(text, place)?;
    let mut parser = Parser { tokens: &tokens, at: 0, place, depth };
    parser.pipeline(&[Kind::End])
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    place: &'a Where<'a>,
    depth: usize,
}

/// Named arguments; of a repeated name the last counts.
struct Arguments(Vec<(String, String)>);

impl Arguments {
    fn get(&self, name: &str) -> Option<String> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.clone())
    }
}

impl<'a> Parser<'a> {
    fn peek(&self, ahead: usize) -> &'a Token {
        // There is always the end token.
        &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)]
    }

    fn kind(&self) -> Kind {
        self.peek(0).kind
    }

    fn position(&self, token: &Token) -> Position {
        self.place.position(token.bytes.0, token.bytes.1)
    }

    fn problem(&self, message: String) -> Diagnostic {
        refuse(message, self.position(self.peek(0)))
    }

    fn advance(&mut self) -> &'a Token {
        let token = self.peek(0);
        self.at += 1;
        token
    }

    fn expect(&mut self, kind: Kind) -> Result<&'a Token, Diagnostic> {
        let token = self.peek(0);
        if token.kind != kind {
            let (wanted, found) = (kind.name(), token.kind.name());
            return Err(
                self.problem(format!("Expected '{wanted}' at position {}, got '{found}'.", token.character))
            );
        }
        Ok(self.advance())
    }

    fn expect_any(&mut self, kinds: &[Kind]) -> Result<&'a Token, Diagnostic> {
        let token = self.peek(0);
        if !kinds.contains(&token.kind) {
            let (list, found) = (listed(kinds), token.kind.name());
            return Err(self
                .problem(format!("Expected one of {list} at position {}, got '{found}'.", token.character)));
        }
        Ok(self.advance())
    }

    fn pipeline(&mut self, ends: &[Kind]) -> Result<Vec<Term>, Diagnostic> {
        if ends.contains(&self.kind()) {
            return Err(self.problem(format!("Empty pipeline before token '{}'.", self.kind().name())));
        }
        let mut terms = vec![self.term()?];
        while self.kind() == Kind::Shift {
            self.at += 1;
            terms.push(self.term()?);
        }
        let token = self.peek(0);
        if !ends.contains(&token.kind) {
            let (list, found) = (listed(ends), token.kind.name());
            return Err(self.problem(format!(
                "Expected one of {list} but got '{found}' at position {}.",
                token.character
            )));
        }
        Ok(terms)
    }

    fn term(&mut self) -> Result<Term, Diagnostic> {
        let token = self.peek(0);
        let at = self.position(token);
        if token.kind != Kind::Ident {
            let found = token.kind.name();
            return Err(
                self.problem(format!("Expected term at position {}, got '{found}'.", token.character))
            );
        }
        match self.peek(1).kind {
            Kind::Colon => self.named(at),
            Kind::Open => match token.value.as_str() {
                "pipe" => self.pipe(at),
                "switch" => self.switch(at),
                "repeat" | "foreach" | "until" => self.repeated(&token.value, at),
                other => {
                    Err(self
                        .problem(format!("Unknown callable term '{other}' at position {}.", token.character)))
                }
            },
            Kind::Shift
            | Kind::Template
            | Kind::Text
            | Kind::Number
            | Kind::Ident
            | Kind::Close
            | Kind::OpenBrace
            | Kind::CloseBrace
            | Kind::Semicolon
            | Kind::Comma
            | Kind::Equals
            | Kind::End => {
                self.at += 1;
                Ok(Term::Task { node: None, task: token.value.clone(), at })
            }
        }
    }

    fn named(&mut self, at: Position) -> Result<Term, Diagnostic> {
        let node = self.expect(Kind::Ident)?.value.clone();
        self.expect(Kind::Colon)?;
        let task = self.expect(Kind::Ident)?.value.clone();
        let next = self.peek(0);
        if next.kind == Kind::Open {
            return Err(self.problem(format!(
                "Named task '{node}' must reference a task term, got callable form at position {}.",
                next.character
            )));
        }
        Ok(Term::Task { node: Some(node), task, at })
    }

    fn pipe(&mut self, at: Position) -> Result<Term, Diagnostic> {
        self.at += 1;
        self.expect(Kind::Open)?;
        let name = self.expect_any(&[Kind::Ident, Kind::Text])?.value.clone();
        self.expect(Kind::Close)?;
        Ok(Term::Pipe { name, at })
    }

    fn arguments(&mut self) -> Result<Arguments, Diagnostic> {
        self.at += 1;
        self.expect(Kind::Open)?;
        let mut arguments = Vec::new();
        if self.kind() != Kind::Close {
            loop {
                let key = self.expect(Kind::Ident)?.value.clone();
                self.expect(Kind::Equals)?;
                let value = self.expect_any(&[Kind::Ident, Kind::Number, Kind::Text, Kind::Template])?;
                arguments.push((key, value.value.clone()));
                if self.kind() != Kind::Comma {
                    break;
                }
                self.at += 1;
            }
        }
        self.expect(Kind::Close)?;
        Ok(Arguments(arguments))
    }

    fn required(
        &self,
        arguments: &Arguments,
        term: &str,
        name: &str,
        at: Position,
    ) -> Result<String, Diagnostic> {
        arguments
            .get(name)
            .filter(|value| !value.is_empty())
            .ok_or_else(|| refuse(format!("{term}(...) requires '{name}='."), at))
    }

    fn deeper(&mut self, at: Position) -> Result<(), Diagnostic> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(super::expand::too_many_terms(at));
        }
        Ok(())
    }

    fn repeated(&mut self, word: &str, at: Position) -> Result<Term, Diagnostic> {
        let arguments = self.arguments()?;
        let wanted = match word {
            "repeat" => "count",
            "foreach" => "over",
            _ => "cond",
        };
        let main = self.required(&arguments, word, wanted, at)?;
        self.expect(Kind::OpenBrace)?;
        self.deeper(at)?;
        let body = self.pipeline(&[Kind::CloseBrace])?;
        self.depth -= 1;
        self.expect(Kind::CloseBrace)?;
        let collect = arguments.get("collect");
        Ok(match word {
            "repeat" => Term::Repeat { count: main, collect, body, at },
            "foreach" => {
                let (item, index) = (arguments.get("item"), arguments.get("index"));
                Term::ForEach { over: main, item, index, collect, body, at }
            }
            _ => Term::Until { cond: main, max_iter: arguments.get("max_iter"), collect, body, at },
        })
    }

    fn switch(&mut self, at: Position) -> Result<Term, Diagnostic> {
        let arguments = self.arguments()?;
        let on = self.required(&arguments, "switch", "on", at)?;
        self.expect(Kind::OpenBrace)?;
        self.deeper(at)?;
        let (mut cases, mut default) = (Vec::new(), None);
        while self.kind() != Kind::CloseBrace {
            if self.kind() == Kind::Semicolon {
                self.at += 1;
                continue;
            }
            let key = self.expect_any(&[Kind::Ident, Kind::Text, Kind::Number, Kind::Template])?;
            self.expect(Kind::Colon)?;
            let branch = self.branch()?;
            if key.kind == Kind::Ident && key.value == "default" {
                default = Some(branch);
            } else {
                cases.push((key.value.clone(), branch));
            }
        }
        self.depth -= 1;
        self.expect(Kind::CloseBrace)?;
        Ok(Term::Switch { on, cases, default, at })
    }

    /// A pipeline, or one in quotes.
    fn branch(&mut self) -> Result<Vec<Term>, Diagnostic> {
        const ENDS: [Kind; 2] = [Kind::Semicolon, Kind::CloseBrace];
        let token = self.peek(0);
        if token.kind == Kind::Text && ENDS.contains(&self.peek(1).kind) {
            let at = self.position(token);
            self.at += 1;
            self.deeper(at)?;
            let inner = pipeline(&token.value, &Where::Fixed(at), self.depth)?;
            self.depth -= 1;
            return Ok(inner);
        }
        self.pipeline(&ENDS)
    }
}

/// The kinds as Python prints a sorted list of their names.
fn listed(kinds: &[Kind]) -> String {
    let mut names: Vec<String> = kinds.iter().map(|kind| format!("'{}'", kind.name())).collect();
    names.sort_unstable();
    format!("[{}]", names.join(", "))
}
