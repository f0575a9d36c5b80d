//! The tokens of a label selector.

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A name or a value, or a keyword: `in` and `notin` are keywords only where an operator may stand.
    Word(&'a str),
    /// One of `= == != ! > < ( ) ,`.
    Sign(&'static str),
    End,
}

/// A token and the byte at which it begins.
pub(super) type Spanned<'a> = (Token<'a>, usize);

/// Splits a text into tokens. Anything between blanks and signs is a word, so that nothing is refused here.
pub(super) struct Lexer<'a> {
    text: &'a str,
    position: usize,
    /// The token that was looked at and not taken.
    ahead: Option<Spanned<'a>>,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, position: 0, ahead: None }
    }

    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    /// Looks at the next token.
    pub(super) fn peek(&mut self) -> Spanned<'a> {
        let token = self.ahead.take().unwrap_or_else(|| self.scan());
        self.ahead = Some(token);
        token
    }

    /// Takes the next token.
    pub(super) fn next(&mut self) -> Spanned<'a> {
        self.ahead.take().unwrap_or_else(|| self.scan())
    }

    fn scan(&mut self) -> Spanned<'a> {
        let rest = &self.text[self.position..];
        let rest = rest.trim_start_matches(is_blank);
        let start = self.text.len() - rest.len();
        // Longer signs first.
        let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
        let (token, len) = match sign {
            Some(sign) => (Token::Sign(sign), sign.len()),
            None if rest.is_empty() => (Token::End, 0),
            None => {
                let ends = |c: char| is_blank(c) || "=!()<>,".contains(c);
                let len = rest.find(ends).unwrap_or(rest.len());
                (Token::Word(&rest[..len]), len)
            }
        };
        self.position = start + len;
        (token, start)
    }
}

const SIGNS: [&str; 9] = ["==", "!=", "=", "!", ">", "<", "(", ")", ","];

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}
